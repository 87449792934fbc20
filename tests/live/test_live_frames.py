"""The frames of the live screen at three sizes: where things are, what is grey, and that every problem has a name."""

import json
import math
import os

import pytest
from rich.console import Console

from tools.live import loop, panels, screen, sentences, watcher
from tools.live.curve import MOST, Curve, Point
from tools.live.job import Reader
from tools.progress import lines
from tools.progress.ranks import RankProgress
from tools.progress.tails import Patterns

STARTED = 1769860800.0  # 2026-01-31T12:00:00Z
SIZES = [(80, 24), (120, 40), (200, 50)]


def text_of(rank, first, last, slow=(), nan=()):
    ms = "80.0" if rank in slow else f"50.{9 - rank % 10}"
    found = []
    for step in range(first, last):
        loss = "nan" if rank in nan else f"{2 * math.exp(-step / 50) + rank / 1000:.6f}"
        head = f"epoch: 1 step: {step}"
        found += [f"{head}, loss is {loss}\n", f"{head}, step time is {ms} ms, 1.0 ms of it for data\n"]
    return "".join(found)


@pytest.fixture
def watched(tmp_path):
    """watched(N, silent, slow, nan): what is seen of N ranks after 42 s, in which the silent ones wrote nothing."""

    def make(number, silent=(), slow=(), nan=(), looks=(41.0, 42.0)):
        rows = [{"rank": rank, "device": rank % 8, "log": f"rank_{rank}.log"} for rank in range(number)]
        document = {"script": "launch.sh", "started": "2026-01-31T12:00:00Z", "host": "elsewhere", "ranks": rows}
        (tmp_path / "launch.json").write_text(json.dumps(document))
        seen = watcher.Watcher(Reader(str(tmp_path)))
        seen.keep_curve()
        for count, second in enumerate((0.0, *looks)):
            for rank in range(number):
                if rank not in silent or not count:
                    path = tmp_path / f"rank_{rank}.log"
                    with open(path, "a", encoding="utf-8") as file:
                        file.write(text_of(rank, 1 + 20 * count, 21 + 20 * count, slow, nan))
                    os.utime(path, (STARTED + second, STARTED + second))
            view = seen.look(second, STARTED + second)
        return view

    return make


def frame(view, width, height, messages=(), picture=None):
    console = Console(width=width, height=height, force_terminal=True, legacy_windows=False)
    return screen.frame(view, picture or screen.Picture(), console, messages)


def plain(found):
    return [line.plain.rstrip() for line in found]


# --- the room ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_a_frame_of_eight_ranks_has_all_of_them_and_fills_the_terminal(watched, width, height):
    found = plain(frame(watched(8, silent=[1], slow=[3]), width, height))
    assert len(found) == height
    assert max(map(len, found)) <= width
    table = [line.split()[:2] for line in found if line[:2] in [f"{rank} " for rank in range(8)]]
    assert table == [["3", "slow"], ["1", "silent"], *([str(rank), "trains"] for rank in (0, 2, 4, 5, 6, 7))]
    assert found[-1].startswith("q quit")
    assert found.count("") <= 5  # between the parts, and a little room


@pytest.mark.parametrize(
    ("width", "height", "loss", "slowest", "log"),
    [(80, 24, True, False, False), (120, 40, True, True, True), (200, 50, True, True, True)],
)
def test_what_is_below_the_table_of_eight_ranks(watched, width, height, loss, slowest, log):
    found = "\n".join(plain(frame(watched(8, slow=[3]), width, height)))
    assert ("loss of rank 0" in found, "the slowest: time of a step" in found) == (loss, slowest)
    assert ("the end of the log of rank 3" in found) == log
    if log:
        assert "epoch: 1 step: 60, step time is 80.0 ms" in found


def test_the_table_comes_first_where_there_is_little_room(watched):
    found = plain(frame(watched(14, silent=[1]), 80, 24))
    assert not [line for line in found if "loss of" in line or "the end of the log" in line]
    assert len([line for line in found if line[:2].strip().isdigit()]) == 14
    assert [line for line in found if line.startswith("loss") and line.endswith("▁")]  # the small curve


def test_a_curve_is_drawn_once(watched):
    found = plain(frame(watched(64), 80, 24))
    assert any(line.startswith("0-63") for line in found) and "loss of rank 0" in found
    assert not [line for line in found if line.startswith("loss 0") and line.endswith("▁")]


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2, 10, 33, 79, 99, 100, 101])
@pytest.mark.parametrize("height", [1, 5, 13, 19, 22, 31])
def test_no_size_is_too_odd(watched, width, height):
    found = frame(watched(4, silent=[0], slow=[1], nan=[2]), width, height, ["launcher: words"])
    assert len(found) <= height
    assert max(line.cell_len for line in found) <= width


def test_the_chosen_rank_is_the_one_whose_log_is_shown(watched):
    view, picture = watched(4), screen.Picture()
    frame(view, 120, 40, picture=picture)
    picture.choose(2)
    assert "the end of the log of rank 2" in plain(frame(view, 120, 40, picture=picture))


def test_a_log_that_has_gone_and_one_that_commands_the_terminal(watched, tmp_path):
    view = watched(1)
    (tmp_path / "rank_0.log").write_bytes(b"\x1b]0;x\x07\x1b[2J\x07words\n")
    assert not [line for line in frame(view, 120, 40) if "\x1b" in line.plain or "\x07" in line.plain]
    (tmp_path / "rank_0.log").unlink()
    assert "cannot be read: No such file or directory" in plain(frame(view, 120, 40))


# --- what is grey -----------------------------------------------------------------------------------------------------


def test_the_numbers_of_a_silent_rank_are_grey_but_not_its_age(watched):
    found = frame(watched(8, silent=[1]), 80, 24)
    row = next(line for line in found if line.plain.startswith("1 "))
    assert row.plain.split()[:5] == ["1", "silent", "42", "s", "20"]
    dim = [span for span in row.spans if "dim" in str(span.style)]
    assert [row.plain[span.start : span.end].split()[0] for span in dim] == ["20"]
    fresh = next(line for line in found if line.plain.startswith("2 "))
    assert not [span for span in fresh.spans if "dim" in str(span.style) and span.end > span.start]


# --- every problem has a name -----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_rank_with_a_problem_is_named_above_the_table(watched, width, height):
    silent, slow, nan = (5, 10, 11, 12, 13), (2, 3), (7,)
    head = plain(frame(watched(32, silent, slow, nan), width, height))
    head = " ".join(head[: next(number for number, line in enumerate(head) if not line)])
    assert "rank 7 (device 7 of elsewhere): the loss is not a finite number" in head
    assert "ranks 5, 10-13" in head
    assert "ranks 2, 3: slow" in head or ("rank 2 (device 2" in head and "rank 3 (device 3" in head)
    assert "more with problems" not in head


def test_ranks_that_are_silent_together_share_a_sentence(watched):
    assert sentences.troubles(watched(16, silent=[4, 5, 6])) == ["ranks 4-6 have written nothing for 42 s"]


def test_many_slow_ranks_have_three_sentences_and_the_others_their_numbers(watched):
    found = sentences.troubles(watched(16, slow=[4, 5, 6, 9, 11]))
    assert [line.split(" takes")[0] for line in found[:3]] == [
        f"rank {rank} (device {rank} of elsewhere)" for rank in (4, 5, 6)
    ]
    assert found[3:] == ["ranks 9, 11: slow, too"]


@pytest.mark.slow
def test_problems_of_very_many_ranks_take_no_more_lines(watched):
    view = watched(300, silent=range(0, 300, 2), nan=[])
    assert len(sentences.in_short(view)) < 600
    assert "and 86 more: silent" in sentences.in_short(view)
    head = plain(frame(view, 80, 24))
    assert head[:24].index("") <= 9


def test_a_name_that_is_cut_ends_with_an_ellipsis(watched):
    view = watched(64, silent=range(1, 64, 2), nan=[0], slow=[2, 4, 6])
    console = Console(width=40, height=12, force_terminal=True, legacy_windows=False)
    assert [line.plain for line in screen.header(view, console)][-1].endswith("…")


# --- the curve --------------------------------------------------------------------------------------------------------


def test_the_curve_begins_with_the_run_and_goes_on(watched):
    view = watched(1)
    assert (view.curve_of, [point.step for point in view.points][:2]) == (0, [1.0, 2.0])
    assert view.points[-1] == Point(60.0, pytest.approx(2 * math.exp(-60 / 50), abs=1e-5))


def test_two_looks_may_be_an_epoch_apart(tmp_path):
    log = tmp_path / "rank_0.log"
    log.write_text("".join(f"epoch: {epoch} step: {step}, loss is 1.5\n" for epoch in (1, 2) for step in (50, 100)))
    one, table = RankProgress(0, str(log)), lines.load({})
    one.look(Patterns(table), 0.0)
    curve = Curve(one, table)
    with open(log, "a", encoding="utf-8") as file:
        file.write("epoch: 4 step: 50, loss is 0.5\n")
    one.look(Patterns(table), 60.0)
    curve.take(one)
    assert curve.points[-1] == Point(350.0, 0.5)


def test_without_a_screen_no_log_is_read_for_a_curve(watched, tmp_path):
    watched(1)
    view = watcher.Watcher(Reader(str(tmp_path))).look(0.0, STARTED)
    assert (view.points, view.curve_of) == ((), None)


def test_a_screen_wants_the_curve(watched, tmp_path):
    watched(1)
    seen = watcher.Watcher(Reader(str(tmp_path)))
    loop.Screen(seen, Console(), None)
    assert len(seen.look(0.0, STARTED).points) == 60


def test_a_long_curve_stays_small_and_whole(tmp_path):
    one = RankProgress(0, str(tmp_path / "rank_0.log"))
    curve = Curve(one, lines.load({}))
    for step in range(10 * MOST):
        one.take({"step": step, "loss": 1.0 + step}, float(step))
        curve.take(one)
    assert len(curve.points) <= MOST
    assert curve.points[0].step < 32 and curve.points[-1].step > 9.9 * MOST


def test_a_chart_has_its_numbers_at_both_axes():
    found = panels.chart_of([Point(float(step), 2.0 - step / 100) for step in range(1, 101)], 40, 8)
    assert len(found) == 8
    assert found[0].startswith(" 1.99 ┤▇") and found[6].startswith("    1 ┤█")
    assert found[3].startswith("1.495 ┤")
    assert found[7].split() == ["step", "1", "step", "100"]
    assert {len(line) for line in found} == {40}


@pytest.mark.parametrize("values", [[1.0, 1.0], [1e308, -1e308], [0.0, 5e-324], [3.0] * 500])
def test_a_chart_of_odd_numbers(values):
    found = panels.chart_of([Point(float(step), value) for step, value in enumerate(values, 1)], 50, 6)
    assert len(found) == 6


@pytest.mark.parametrize(("number", "width", "height"), [(0, 80, 9), (1, 80, 9), (9, 12, 9), (9, 80, 4)])
def test_no_chart_where_it_would_say_nothing(number, width, height):
    assert panels.chart_of([Point(float(step), 1.0) for step in range(number)], width, height) == []


@pytest.mark.parametrize(
    ("value", "drawn"), [(0.0, "    "), (1.0, "██  "), (2.0, "████"), (9.0, "████"), (0.25, "▌   ")]
)
def test_a_bar(value, drawn):
    assert panels.bar(value, 2.0, 4) == drawn


def test_the_two_charts_keep_their_own_colours(watched):
    row = next(line for line in panels.below(watched(4, slow=[2]), None, 120, 14) if "rank 2  █" in line.plain)
    colours = {str(span.style): row.plain[span.start : span.end] for span in row.spans}
    assert "█" in colours["cyan"] and "rank 2" not in colours["cyan"]
    assert "rank 2" in colours["yellow"] and not str(row.style)


def test_the_slowest_ranks_are_compared_by_one_time(watched):
    found = plain(panels.below(watched(4, slow=[2]), None, 120, 14))
    assert [line.split("slowest")[0].split()[-1] for line in found if "slowest" in line] == ["the"]
    assert [line for line in found if "rank 2  █" in line and "80 ms" in line and "x1.5" in line]
    assert not [line for line in found if " 1 ms" in line]
