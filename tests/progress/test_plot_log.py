"""plot_log.py: what it reads from logs, and what it shows."""

import json
import os
from collections import deque

import json_pages
import pytest

from tools import plot_log
from tools.pages import example_run
from tools.progress import figures, lines, series
from tools.progress.figures import sparkline
from tools.run_page import curves, outliers, picture, reading, table
from tools.run_page.reading import Curve


def write(folder, **ranks):
    """Logs of the ranks rank_0=[(loss, step time, data time), ...], ten steps an epoch."""
    for name, points in ranks.items():
        with open(folder / f"{name}.log", "w", encoding="utf-8") as file:
            file.write("something else\n")
            for number, (loss, step, data) in enumerate(points):
                place = f"epoch: {number // 10 + 1} step: {number % 10 + 1}"
                file.write(f"{place}, loss is {loss}\n{place}, step time is {step} ms, {data} ms of it for data\n")


@pytest.mark.thorough
def test_each_rank_gets_a_line_and_the_slow_one_a_word(tmp_path, capsys):
    good = [(2.0 - number / 10, 100.0, 1.0) for number in range(20)]
    write(tmp_path, rank_0=good, rank_1=good, rank_2=[(loss, 100.0, 60.0) for loss, _, _ in good], rank_10=good)
    assert plot_log.main([str(tmp_path)]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["0", "1", "2", "10", "rank"]
    assert heading.split() == ["rank", "loss", "first", "last", "step", "time", "median", "for", "data"]
    assert lines[0].split()[1][0] == "█" and lines[0].split()[1][-1] == "▁"
    assert lines[0].split()[2:4] == ["2", "0.1"]
    assert lines[2].endswith("  100.0 ms    60.0 ms")
    text = "rank 2: Time of a step that waits for data 60 ms, the median rank 1 ms: 5900 % more"
    assert lines[-1] == text


@pytest.mark.slow
def test_the_time_before_the_collective_names_the_slow_rank_though_all_steps_take_alike(tmp_path, capsys):
    for rank in range(8):
        before = 60.0 if rank == 5 else 20.0 + rank / 10
        with open(tmp_path / f"rank_{rank}.log", "w", encoding="utf-8") as file:
            for step in range(1, 9):
                took = 90.0 if rank == 2 else 80.0  # a clock that differs: without this time rank 2 would be named
                place = f"epoch: 1 step: {step}"
                print(f"{place}, loss is 2.5", file=file)
                parts = f"1.5 ms of it for data, {before} ms before the collective"
                print(f"{place}, step time is {took} ms, {parts}, 99.5 samples/s, ends in 0:00:01", file=file)
    assert plot_log.main([str(tmp_path)]) == 0
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.endswith("   median   for data     before")
    assert lines[5].endswith("   80.0 ms     1.5 ms    60.0 ms")
    what = "Time of a step before the ranks wait for one another"
    assert lines[8:] == [f"rank 5: {what} 60 ms, the median rank 20.3 ms: 196 % more"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_log_that_is_no_file_is_told_and_not_waited_for(tmp_path, capsys, make):
    make(tmp_path / "rank_0.log")
    assert plot_log.main([str(tmp_path)]) == 1
    assert "plot_log.py: The log of rank 0 cannot be read: it is not a regular file\n" in capsys.readouterr().err
    write(tmp_path, rank_1=[(2.0, 10.0, 1.0)] * 5)
    assert plot_log.main([str(tmp_path), "--json"]) == 0  # the others have their numbers
    assert [row["rank"] for row in json.loads(capsys.readouterr().out)["ranks"]] == [1]


def test_the_step_that_compiled_the_network_does_not_count(tmp_path):
    write(tmp_path, rank_0=[(1.0, 9000.0, 1.0), (1.0, 10.0, 1.0), (1.0, 12.0, 1.0), (1.0, 11.0, 1.0)])
    assert outliers.typical(reading.read(str(tmp_path), lines.load({})).curves["step_ms"]) == {0: 11.0}


@pytest.mark.parametrize(
    ("line", "step", "columns"),
    [
        ("epoch: 1 step: 156, loss is 2.0084016", 156, {"loss": [2.0084016]}),
        ("epoch: 1 step: 5, loss is nan", 5, {"loss": [pytest.approx(float("nan"), nan_ok=True)]}),
        (
            "[2024-01-01 00:00:00] mindocr INFO - epoch: [1/5] step: [20/62], loss: 3.250000, lr: 0.000500, "
            "per step time: 90.500 ms, fps: 353.59 img/s",
            *(20, {"loss": [3.25], "lr": [0.0005], "step_ms": [90.5], "samples_per_s": [353.59]}),
        ),
        (
            "epoch: 1 step: 4, loss is 1.5\nTrain epoch time: 80.000 ms, per step time: 20.000 ms",
            *(4, {"loss": [1.5], "step_ms": [20.0]}),
        ),
    ],
)
def test_lines_of_mindspore_and_mindocr_are_understood(line, step, columns):
    log = series.Reader(lines.load({})).of_lines(line.splitlines())
    assert (log.places, log.columns) == ([(1, step)], columns)


def spark(values, width=24):
    return sparkline(table.course(list(range(len(values))), values, width))


def test_the_small_curve_of_the_live_screen_has_the_newest_values():
    assert figures.curve(deque([9.0, 3.0, float("nan"), 1.0], 4), 3) == "█ ▁"
    assert figures.curve([float("nan")], 3) == figures.curve([], 3) == ""


def test_what_is_no_number_is_seen_in_the_sparkline():
    assert spark([3.0, float("nan"), 1.0, 2.0]) == "█x▁▅"
    assert spark([]) == ""
    assert spark([1.0] * 3) == "▁▁▁"
    assert spark([1e308, -1e308, 0.0]) == "█▁▅"
    assert spark(list(range(1000)), width=8) == "▁▂▃▄▅▆▇█"


def test_the_sparkline_is_by_steps_and_has_a_blank_where_a_log_was_not_read():
    steps = [*range(100), *range(700, 800)]
    assert sparkline(table.course(steps, [float(step) for step in steps], 8)) == "▁      █"


# ---- of many ranks, restarts and large logs --------------------------------------------------------------------------


def drifting_and_slow(folder, ranks):
    """Logs: rank 7 drifts, and rank 9 waits for data."""
    for rank in range(ranks):
        drift = 0.5 if rank == 7 else 0.0
        data = 60.0 if rank == 9 else 1.0
        write(folder, **{f"rank_{rank}": [(2.0 - step / 50 + drift * (step > 20), 100.0, data) for step in range(40)]})


@pytest.mark.slow
@pytest.mark.parametrize(("ranks", "rows"), [(16, 16), (17, 4), (40, 4)])
def test_of_many_ranks_those_that_differ_have_a_row_and_the_others_share_one(tmp_path, capsys, ranks, rows):
    drifting_and_slow(tmp_path, ranks)
    assert plot_log.main([str(tmp_path)]) == 0
    _, *said = capsys.readouterr().out.splitlines()
    assert said[rows:] == [
        "rank 7: Loss has drifted: 1.81 at the end, the median rank 1.31",
        "rank 9: Time of a step that waits for data 60 ms, the median rank 1 ms: 5900 % more",
    ]
    if rows == 4:
        assert [line.split()[0] for line in said[:3]] == ["7", "9", "0"]
        assert said[3].startswith(f"{ranks - 3} others  █") and said[3].endswith("  100.0 ms     1.0 ms")
    else:
        assert [line.split()[0] for line in said[:16]] == [str(rank) for rank in range(16)]


def test_too_many_that_differ_do_not_fill_the_screen():
    found = [outlier(rank) for rank in range(100, 140)]
    own, others = table.divided(list(range(200)), found)
    assert (len(own), own[0], own[-1], len(others)) == (24, 100, 0, 176)
    assert table.divided(list(range(17)), [outlier(rank) for rank in range(1, 15)]) == (list(range(17)), [])


def outlier(rank, field="data_ms"):
    return outliers.Outlier(kind=outliers.SLOW, field=field, rank=rank, value=2.0, middle=1.0)


@pytest.mark.slow
def test_restarts_are_one_course_as_on_the_page(tmp_path, capsys):
    folder = example_run.make(str(tmp_path))
    assert plot_log.main([folder, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    steps = [point["step"] for point in found["ranks"][0]["points"]]
    assert steps == sorted(set(steps)) and (steps[0], steps[-1]) == (2, 1200)
    assert [row["rank"] for row in found["slow"]] == [3] and [row["rank"] for row in found["drifting"]] == [6]


def test_of_a_large_log_parts_are_read_and_that_is_said(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(reading, "_MOST_OF_LOG", 64 << 10)
    write(tmp_path, rank_0=[(2.0, 10.0, 1.0)] * 5000)
    assert plot_log.main([str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    cut = found["notes"][-1]
    assert "Too large to read completely: 1 log. " in cut
    assert f"plot_log.py: {cut}\n" in said.err
    assert 100 < len(found["ranks"][0]["points"]) < 4000


def test_json_has_what_is_slow_for_a_while_and_what_is_no_number(tmp_path, capsys):
    good = [(2.0, 100.0, 1.0)] * 40
    late = [(2.0, 100.0, 1.0)] * 30 + [(float("inf"), 100.0, 60.0)] * 10
    write(tmp_path, rank_0=good, rank_1=good, rank_2=good, rank_3=late)
    assert plot_log.main([str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    slow = {"rank": 3, "kind": "data_time", "time": 60.0, "median": 1.0, "since": 31, "until": 40}
    assert found["slow"] == [slow]
    assert found["not_finite"] == [{"rank": 3, "field": "loss", "step": 31, "times": 10}]


def curve(*values):
    return Curve(steps=list(range(1, len(values) + 1)), values=list(values))


def test_times_before_the_ranks_wait_count_where_most_ranks_have_them_and_else_those_of_steps():
    steps = {rank: curve(*[90.0 if rank == 2 else 80.0] * 9) for rank in range(4)}
    before = {rank: curve(*[20.0] * 9) for rank in range(4)}
    assert outliers.find({"step_ms": steps, "before_ms": before}) == []
    for known in ({}, {"before_ms": {0: before[0]}}, {"before_ms": {0: before[0], 1: before[1]}}):
        assert [(one.rank, one.field) for one in outliers.find({"step_ms": steps, **known})] == [(2, "step_ms")]


def test_waits_for_data_are_compared_with_the_step_before_the_ranks_wait_if_it_has_no_time_of_its_own():
    before = {rank: curve(*[100.0] * 9) for rank in range(4)}
    data = {rank: curve(*[2.0 if rank == 2 else 1.0] * 9) for rank in range(4)}
    assert outliers.find({"before_ms": before, "data_ms": data}) == []  # a hundredth of a step


# ---- the picture -----------------------------------------------------------------------------------------------------


def drawn(folder):
    """The parts of the picture of a run."""
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    data = reading.read(str(folder), lines.load({}))
    return picture.draw(data, outliers.find(data.curves)).axes


def test_of_many_ranks_the_middle_a_band_and_those_that_differ_are_drawn(tmp_path):
    drifting_and_slow(tmp_path, 40)
    of_loss, of_step, of_data = drawn(tmp_path)
    assert [len(axes.lines) for axes in (of_loss, of_step, of_data)] == [2, 1, 2]
    assert [[text.get_text() for text in axes.texts] for axes in (of_loss, of_step, of_data)] == [
        *(["rank 7"], [], ["rank 9"]),
    ]
    assert all(len(axes.collections) == 1 for axes in (of_loss, of_step, of_data))
    assert of_loss.lines[1].get_color() == of_loss.texts[0].get_color() != of_data.texts[0].get_color()


def test_two_ranks_are_drawn_by_name_without_the_step_that_compiled(tmp_path):
    values = [(2.0, 9000.0, 1.0)] + [(2.0, 10.0, 1.0)] * 5
    write(tmp_path, rank_0=values, rank_1=values)
    of_loss, of_step, _ = drawn(tmp_path)
    assert [text.get_text() for text in of_loss.texts] == ["rank 0", "rank 1"]
    assert list(of_step.lines[0].get_xdata()) == [2, 3, 4, 5, 6] and of_step.get_ylim() == (0, 11.0)


def test_a_peak_does_not_make_the_rest_flat(tmp_path):
    values = [(2.0, 9000.0 if step == 150 else 10.0, 1.0) for step in range(200)]
    write(tmp_path, rank_0=values)
    _, of_step, _ = drawn(tmp_path)
    assert of_step.get_ylim() == (0, pytest.approx(16.5))
    assert of_step.get_title(loc="right") == "peaks, at most 9000 ms, are cut off"


def test_points_on_both_sides_of_a_hole_are_left_out():
    steps = [*range(1, 3001), *range(100_001, 103_001)]
    found = curves.draw({0: Curve(steps=steps, values=[float(step < 5000) for step in steps])}, [0])
    places = picture._places(found)
    assert found.every == 6 and len(places) == len(found.steps)  # no two steps share a point across the hole
    steps = steps[1:]
    found = curves.draw({0: Curve(steps=steps, values=[float(step < 5000) for step in steps])}, [0])
    left = set(range(len(found.steps))) - set(picture._places(found))
    assert [found.steps[place] for place in sorted(left)] == [2996, 100001]


def test_names_beside_the_lines_do_not_cover_one_another(tmp_path):
    good = [(2.0, 100.0, 1.0)] * 40
    behind = {f"rank_{rank}": [(2.0, 100.0, 60.0 + rank / 100)] * 40 for rank in range(9, 12)}
    write(tmp_path, **{f"rank_{rank}": good for rank in range(9)}, **behind)
    *_, of_data = drawn(tmp_path)
    heights = [text.get_position()[1] for text in of_data.texts]
    assert len(heights) == 3 and all(b - a > 0.09 for a, b in zip(heights, heights[1:]))


@pytest.mark.slow
def test_the_picture_is_a_png_beside_the_logs(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    write(tmp_path, rank_0=[(2.0, 10.0, 1.0)] * 5, rank_1=[(2.0, 10.0, 1.0)] * 5)
    assert plot_log.main([str(tmp_path)]) == 0
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert plot_log.main([str(tmp_path), "--output", str(tmp_path / "plot.xyz")]) == 2
    assert "plot.xyz cannot be written" in capsys.readouterr().err


def test_without_matplotlib_there_is_the_table_and_a_word(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    write(tmp_path, rank_0=[(2.0, 10.0, 1.0)] * 5)
    assert plot_log.main([str(tmp_path)]) == 0
    assert "matplotlib is missing; install it" in capsys.readouterr().err
    assert plot_log.main([str(tmp_path), "--output", str(tmp_path / "x.png")]) == 2


def test_what_is_no_run_is_said(tmp_path, capsys):
    assert plot_log.main([str(tmp_path / "nix")]) == 2
    assert "no such folder; name the folder of a run, such as logs/latest" in capsys.readouterr().err
    assert plot_log.main([str(tmp_path)]) == 2
    assert "has no launch.json; name the folder of a run" in capsys.readouterr().err
    (tmp_path / "rank_0.log").write_text("nothing\n")
    assert plot_log.main([str(tmp_path)]) == 1
    assert "no log has a line such as" in capsys.readouterr().err


@pytest.mark.slow
def test_json_has_the_numbers_and_draws_nothing(tmp_path, capsys):
    good = [(2.0, 100.0, 1.0)] * 4
    write(tmp_path, rank_0=good, rank_1=good, rank_2=[(float("nan"), 100.0, 60.0)] * 4)
    assert plot_log.main([str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    logs = [f"rank_{rank}.log" for rank in range(3)]
    assert (found["folder"], sorted(os.listdir(tmp_path))) == (str(tmp_path), logs)
    assert said.err == "".join(f"plot_log.py: {note}\n" for note in found["notes"])
    slow = {"rank": 2, "kind": "data_time", "time": 60.0, "median": 1.0, "since": None, "until": None}
    assert found["slow"] == [slow]
    plot_log.main([example_run.make(str(tmp_path)), "--json"])
    json_pages.check("plot_log.py", found, json.loads(capsys.readouterr().out))
    point = {"step": 1, "loss": 2.0, "step_time": 100.0, "data_time": 1.0, "before_time": None}
    assert found["ranks"][0]["points"][0] == point and found["ranks"][2]["points"][3]["loss"] == "nan"
    assert found["ranks"][2]["median"] == {"step_time": 100.0, "data_time": 60.0, "before_time": None}


def test_json_of_logs_without_a_loss_is_no_document(tmp_path, capsys):
    (tmp_path / "rank_0.log").write_text("nothing\n")
    assert (plot_log.main([str(tmp_path), "--json"]), capsys.readouterr().out) == (1, "")


@pytest.mark.slow
def test_with_json_a_picture_is_drawn_where_output_says(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    write(tmp_path, rank_0=[(2.0, 10.0, 1.0)] * 5)
    assert plot_log.main([str(tmp_path), "--json", "--output", str(tmp_path / "x.png")]) == 0
    assert json.loads(capsys.readouterr().out)["ranks"] and (tmp_path / "x.png").exists()


def test_the_newest_run_is_the_default(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.makedirs("logs/latest")
    write(tmp_path / "logs" / "latest", rank_0=[(2.0, 10.0, 1.0)] * 5)
    assert plot_log.main(["--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == "logs/latest"
