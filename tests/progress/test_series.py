"""tools/progress/series.py: the numbers of whole logs, of any size and with anything in them."""

import math
import os

import pytest

from tools.progress import lines, series


@pytest.fixture
def read(tmp_path):
    """read(text or bytes, most): the Series of a log."""
    reader = series.Reader(lines.load({}))

    def of(content, most=1 << 20):
        path = tmp_path / "rank_0.log"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return reader.read(str(path), most)

    return of


def test_a_log_of_the_trainer(read):
    found = read(
        "epoch: 1 step: 1, loss is 2.5\n"
        "epoch: 1 step: 1, step time is 45.1 ms, 3.2 ms of it for data, 1419.1 samples/s, ends in 0:03:21\n"
        "epoch: 1 step: 2, loss is 1.5\n"
        "epoch: 1, accuracy on held-out data: 97.21%\n"
        "epoch: 2 step: 1, loss is 1\n"
    )
    assert found.places == [(1, 1), (1, 2), (2, 1)]
    assert found.columns == {
        "loss": [2.5, 1.5, 1.0],
        "step_ms": [45.1, None, None],
        "data_ms": [3.2, None, None],
        "samples_per_s": [1419.1, None, None],
    }
    assert found.metrics == {"accuracy %": {(1, 2): 97.21}}
    assert (found.counted.in_epoch, found.read) == (2, found.size)


def test_every_sample_line_of_the_table_is_read_as_the_table_says():
    patterns = lines.load({})
    for pattern in patterns:
        for line, says in pattern.samples:
            ((_, found),) = series.Reader(patterns).of_block(line.encode())
            assert found.keys() == says.keys(), line


def test_lines_that_differ_in_digits_are_one_kind_and_others_are_not(read):
    log = "".join(f"epoch: 1 step: {step}, loss is {step}.25\nstep {step} of no kind\n" for step in range(1, 200))
    assert read(log).columns["loss"] == [step + 0.25 for step in range(1, 200)]
    assert read("epoch: 1 step: 1, loss is 1.5\nepoch: 1 step: 2, loss is 0.00002\n").columns["loss"] == [1.5, 0.00002]


def test_a_users_pattern_with_a_digit_of_its_own_finds_its_lines(tmp_path):
    table = tmp_path / "mine.yaml"
    table.write_text("progress:\n  - {name: mine, pattern: 'gpu0 at (?P<step>\\d+) loss (?P<loss><number>)'}\n")
    reader = series.Reader(lines.load({"LAUNCH_PROGRESS": str(table)}))
    log = tmp_path / "log"
    log.write_text("gpu1 at 1 loss 9\ngpu0 at 1 loss 5\n")
    assert reader.read(str(log), 1 << 20).columns == {"loss": [5.0]}


def test_nan_and_inf_are_values(read):
    found = read("epoch: 1 step: 1, loss is nan\nepoch: 1 step: 2, loss is inf\nepoch: 1 step: 3, loss is 1\n")
    first, second, third = found.columns["loss"]
    assert math.isnan(first) and (second, third) == (math.inf, 1)


def test_colours_progress_bars_and_binary(read):
    bars = "".join(f"\r {step}%|##  | {step}/3 [00:01<00:01,  2.00it/s, loss=0.{step}]" for step in (1, 2, 3))
    found = read(b"\x00\xff\xfe\n\x1b[32mepoch: 9 step: 1, loss is 7\x1b[0m\n" + bars.encode())
    assert found.places == [(9, 1), (9, 2), (9, 3)]
    assert found.columns == {"loss": [0.1, 0.2, 0.3], "step_ms": [500.0, 500.0, 500.0]}


def test_a_bar_that_begins_again_is_the_next_epoch(read):
    found = read("".join(f"50%|# | {step}/2 [00:10<00:10,  2.0s/it]\n" for step in (1, 2, 1, 2)))
    assert found.places == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert found.columns["step_ms"] == [2000.0] * 4


def test_times_of_lines(read):
    found = read(
        "2026-01-31 12:00:00 begins\n2026-01-31 12:00:09,500 epoch: 1 step: 1, loss is 1\n2026-01-31 12:01:00 ends\n"
    )
    assert (found.first_step - found.first, found.last - found.first) == (9.5, 60)


def test_of_a_huge_log_its_ends_and_parts_between_are_read(tmp_path):
    path = tmp_path / "rank_0.log"
    with open(path, "wb") as file:
        file.write(b"epoch: 1 step: 1, loss is 3\n")
        file.seek(10 << 30)  # sparse: zeros in between
        file.write(b"\nepoch: 1 step: 99, loss is 1\n")
    found = series.Reader(lines.load({})).read(str(path), 4 << 20)
    assert found.places == [(1, 1), (1, 99)]
    assert found.size > 10 << 30 and 3 << 20 < found.read <= (4 << 20) + 100


def test_a_large_log_of_whole_lines_is_sampled_evenly(read):
    log = "".join(f"epoch: 1 step: {step}, loss is 1.5\n" for step in range(1, 50_001))
    found = read(log, 400_000)
    steps = [step for _, step in found.places]
    assert (steps[0], steps[-1]) == (1, 50_000)
    assert found.read < found.size
    assert 5_000 < len(steps) < 20_000
    assert max(after - before for before, after in zip(steps, steps[1:])) < 45_000


def test_no_number_and_no_log(read, tmp_path):
    found = read("hello\n")
    assert (found.places, found.columns, found.metrics) == ([], {}, {})
    assert read("").size == 0
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="regular file"):
        series.Reader([]).read(str(tmp_path / "pipe"), 100)


def test_memory_of_kinds_is_bounded(read):
    reader = series.Reader(lines.load({}))
    words = "".join(
        chr(97 + number // 676) + chr(97 + number // 26 % 26) + chr(97 + number % 26) + "\n" for number in range(10_000)
    )
    assert list(reader.of_block(words.encode())) == []
    assert len(reader._kinds) <= lines.MOST_KINDS
