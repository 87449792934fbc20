"""tools/progress: the newest numbers of logs that grow, and which ranks are slower than the others."""

import math
import os

import pytest

from tools.progress import lines, slowness, tails
from tools.progress.ranks import Ranks
from tools.progress.slowness import BEFORE, DATA, STEP, Stragglers

TABLE = lines.load({})
LINE = "epoch: {epoch} step: {step}, loss is {loss}\n"
TIME = "epoch: {epoch} step: {step}, step time is {ms} ms, {data} ms of it for data\n"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "rank_0.log"


@pytest.fixture
def look(log):
    """look(): the newest numbers since the last call."""
    tail, patterns = tails.Tail(str(log)), tails.Patterns(TABLE)
    return lambda: tail.look(patterns)


def append(log, text):
    with open(log, "ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def test_a_log_that_is_not_there_or_has_not_grown_says_nothing(log, look):
    assert look() is None
    append(log, LINE.format(epoch=1, step=2, loss=0.5))
    assert look() == {"epoch": 1, "step": 2, "loss": 0.5}
    assert look() is None


def test_the_newest_line_counts_and_half_a_line_does_not(log, look):
    append(log, LINE.format(epoch=1, step=2, loss=0.5) + LINE.format(epoch=1, step=3, loss=0.25))
    append(log, "epoch: 1 step: 4, loss is 0.1")  # more digits may follow
    assert look() == {"epoch": 1, "step": 3, "loss": 0.25}


def test_of_ten_gigabytes_only_the_end_is_read(log, look):
    with open(log, "wb") as file:
        file.truncate(10 << 30)
    append(log, "\n" + LINE.format(epoch=1, step=7, loss=2))
    assert look()["step"] == 7


def test_numbers_behind_many_other_lines_are_found(log, look):
    append(log, "first\n")
    assert look() == {}
    append(log, LINE.format(epoch=1, step=7, loss=2) + "another line\n" * 1000)
    assert look()["step"] == 7


def test_a_progress_bar_has_no_end_of_line(log, look):
    append(
        log, "\r 10%|#   | 1/10 [00:01<00:09,  1.00it/s, loss=0.9]\r 20%|##  | 2/10 [00:02<00:08,  2.00it/s, loss=0.5]"
    )
    assert look() == {"step": 2, "steps": 10, "steps_per_s": 2, "loss": 0.5}


def test_a_log_that_was_cut_is_read_from_its_beginning(log, look):
    append(log, LINE.format(epoch=3, step=100, loss=1) * 50)
    look()
    log.write_text(LINE.format(epoch=1, step=1, loss=9))
    assert look() == {"epoch": 1, "step": 1, "loss": 9}


@pytest.mark.parametrize("text", [b"\x00\xff\x1b[31m" * 3000 + b"\n", b"\x1b]0;title\x07\n", b"\n" * 10000])
def test_bytes_that_are_no_text_do_no_harm(log, look, text):
    append(log, text)
    assert look() == {}
    append(log, b"\x1b[32mepoch: 1 step: 5, loss is 0.5\x1b[0m\n")
    assert look()["loss"] == 0.5


def test_a_fifo_is_not_waited_for(log, look):
    os.mkfifo(log)
    assert look() is None or look() == {}


def test_what_no_pattern_matched_before_is_found_later(log, look):
    append(log, LINE.format(epoch=1, step=1, loss=1))
    look()
    for step in range(2, 40):
        append(log, LINE.format(epoch=1, step=step, loss=1) + "accuracy on held-out data: 97.5%\n")
        if "percent" in look():
            return
    pytest.fail("the new kind of line was never seen")


# --- ranks ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def ranks(tmp_path):
    """ranks(N): Ranks, and a function that writes to the log of one."""

    def make(number):
        paths = {rank: tmp_path / f"rank_{rank}.log" for rank in range(number)}
        found = Ranks(((rank, str(path)) for rank, path in paths.items()), tails.Patterns(TABLE))
        return found, lambda rank, text: append(paths[rank], text)

    return make


def test_a_step_time_is_counted_where_none_is_printed(ranks):
    found, write = ranks(1)
    for number in range(4):
        write(0, LINE.format(epoch=1, step=10 * number, loss=1))
        os.utime(found.by_rank[0].tail.path, (2.0 * number, 2.0 * number))
        found.look(now=0.0)
    assert found.by_rank[0].step_ms == pytest.approx(200)
    assert found.by_rank[0].steps_done == 30


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("50%|# | 5/10 [00:10<00:10,  2.05s/it]\n", 2050), ("50%|# | 5/10 [00:10<00:10,  4.00it/s]\n", 250)],
)
def test_a_step_time_in_other_units(ranks, text, milliseconds):
    found, write = ranks(1)
    write(0, text)
    found.look(now=0.0)
    assert found.by_rank[0].step_ms == pytest.approx(milliseconds)


def test_the_steps_of_several_epochs_are_added(ranks):
    found, write = ranks(1)
    for epoch, step in ((1, 10), (1, 20), (2, 5), (2, 15)):
        write(0, LINE.format(epoch=epoch, step=step, loss=1))
        found.look(now=float(10 * epoch + step))
    assert found.by_rank[0].steps_done == 10 + 5 + 10


def test_the_losses_before_the_first_look_are_kept(ranks):
    found, write = ranks(1)
    write(0, "".join(LINE.format(epoch=1, step=step, loss=step) for step in range(1, 6)))
    found.look(now=0.0)
    assert list(found.by_rank[0].losses) == [1, 2, 3, 4, 5]


# --- who is slow ------------------------------------------------------------------------------------------------------


def look_at(ranks, times, data=None, before=None):
    """Ranks that took these times for a step."""
    found, write = ranks(len(times))
    for rank, time in enumerate(times):
        write(rank, TIME.format(epoch=1, step=10, ms=time, data=(data or {}).get(rank, 1)))
    found.look(now=0.0)
    for rank, time in (before or {}).items():
        found.by_rank[rank].values["before_ms"] = time
    return found


def test_the_slowest_by_step_time(ranks):
    paces = slowness.paces(look_at(ranks, [50, 50, 90, 50]).by_rank.values(), dict.fromkeys(range(4), "a"))
    assert paces[2].kind == STEP
    assert paces[2].ratio == paces[2].ratio_of_host == pytest.approx(1.8)
    assert paces[0].ratio == 1


def test_the_time_before_the_collective_counts_more_than_the_step_time(ranks):
    found = look_at(ranks, [90, 90, 90, 90], before={0: 20, 1: 20, 2: 80, 3: 20})
    paces = slowness.paces(found.by_rank.values(), {})
    assert (paces[2].kind, paces[2].ratio) == (BEFORE, 4)


@pytest.mark.parametrize(
    ("step", "times", "slow"),
    [  # eight ranks on four cores; rank 5 shared a core with another program, and the others had theirs
        (98.6, [6.6, 7.2, 5.9, 5.4, 5.3, 26.8, 5.6, 6.7], {5}),
        (98.6, [5.3, 4.1, 3.5, 3.9, 3.4, 26.8, 5.6, 6.5], {5}),
        (25.6, [7.6, 8.3, 9.5, 8.8, 10.7, 10.2, 7.8, 7.5], set()),
    ],
)
def test_a_rank_from_which_the_job_loses_nothing_is_not_slow(ranks, step, times, slow):
    found = look_at(ranks, [step] * len(times), before=dict(enumerate(times)))
    paces = slowness.paces(found.by_rank.values(), {})
    assert {rank for rank, pace in paces.items() if pace.is_slow(1.25)} == slow


def test_a_rank_that_waits_for_data_is_slow_though_all_steps_take_the_same_time(ranks):
    paces = slowness.paces(look_at(ranks, [90, 90, 90, 90], data={2: 61}).by_rank.values(), {})
    assert paces[2].kind == DATA
    assert paces[2].ratio == pytest.approx(90 / 30)
    assert paces[0].kind == STEP


def test_a_host_with_slow_ranks_only(ranks):
    hosts = {0: "a", 1: "a", 2: "a", 3: "b", 4: "b"}
    paces = slowness.paces(look_at(ranks, [50, 50, 50, 100, 100]).by_rank.values(), hosts)
    assert (paces[3].ratio, paces[3].ratio_of_host) == (2, 1)


def test_one_rank_alone_and_ranks_without_numbers_have_no_pace(ranks):
    assert slowness.paces(look_at(ranks, [50]).by_rank.values(), {}) == {}
    assert slowness.paces(ranks(3)[0].by_rank.values(), {}) == {}


@pytest.mark.slow
@pytest.mark.parametrize("time", ["nan", "inf", "0"])
def test_a_time_that_is_none_counts_nothing(ranks, time):
    paces = slowness.paces(look_at(ranks, [50, time, 50, 50]).by_rank.values(), {})
    assert all(math.isfinite(pace.ratio) for pace in paces.values())


def straggle(ranks, times):
    """(the ranks named, the step at which each was) of looks at three ranks, the last of which takes these times."""
    found, write = ranks(3)
    judge, named = Stragglers(factor=1.5), []
    for number, time in enumerate(times):
        for rank in range(3):
            ms = time if rank == 2 else 10
            write(rank, TIME.format(epoch=1, step=5 * number, ms=ms, data=0))
        grown = found.look(now=float(number))
        named += [(rank, 5 * number) for rank, _ in judge.update(grown, slowness.paces(found.by_rank.values(), {}))]
    return named


def test_a_straggler_is_named_once_after_twenty_steps(ranks):
    assert straggle(ranks, [20] * 10) == [(2, 20)]


def test_a_rank_that_is_slow_now_and_then_is_not_named(ranks):
    assert straggle(ranks, [20, 20, 20, 10] * 5) == []
