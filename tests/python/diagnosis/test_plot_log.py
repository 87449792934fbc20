"""plot_log.py: what it reads from logs, and what it shows."""

import json
import os

import json_pages
import pytest

from tools import plot_log
from tools.diagnosis import loss_curve
from tools.progress import lines


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
    assert lines[-1] == "rank 2 is slow: it waits for data 60.0 ms, the middle rank 1.0 ms"


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
    assert lines[8:] == ["rank 5 is slow: before the collective it takes 60.0 ms, the middle rank 20.3 ms"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_log_that_is_no_file_is_told_and_not_waited_for(tmp_path, capsys, make):
    make(tmp_path / "rank_0.log")
    assert plot_log.main([str(tmp_path)]) == 2
    said = f"plot_log.py: {tmp_path}/rank_0.log cannot be read: it is not a regular file\n"
    assert capsys.readouterr().err == said


def test_the_step_that_compiled_the_network_does_not_count(tmp_path):
    write(tmp_path, rank_0=[(1.0, 9000.0, 1.0), (1.0, 10.0, 1.0), (1.0, 12.0, 1.0), (1.0, 11.0, 1.0)])
    assert loss_curve.typical(loss_curve.read_run(str(tmp_path))[0], "step_time") == 11.0


@pytest.mark.parametrize(
    ("line", "point"),
    [
        ("epoch: 1 step: 156, loss is 2.0084016", loss_curve.Point(156, 2.0084016)),
        ("epoch: 1 step: 5, loss is nan", loss_curve.Point(5, pytest.approx(float("nan"), nan_ok=True))),
        (
            "[2024-01-01 00:00:00] mindocr INFO - epoch: [1/5] step: [20/62], loss: 3.250000, lr: 0.000500, "
            "per step time: 90.500 ms, fps: 353.59 img/s",
            loss_curve.Point(20, 3.25, 90.5),
        ),
        (
            "epoch: 1 step: 4, loss is 1.5\nTrain epoch time: 80.000 ms, per step time: 20.000 ms",
            loss_curve.Point(4, 1.5, 20.0),
        ),
    ],
)
def test_lines_of_mindspore_and_mindocr_are_understood(line, point):
    assert loss_curve.read_log(line.splitlines(), lines.load({})) == [point]


def test_what_is_no_number_is_seen_in_the_sparkline():
    assert plot_log.sparkline([3.0, float("nan"), 1.0, 2.0]) == "█x▁▅"
    assert plot_log.sparkline([]) == ""
    assert plot_log.sparkline([1.0] * 3) == "▁▁▁"
    assert plot_log.sparkline([1e308, -1e308, 0.0]) == "█▁▅"
    assert plot_log.sparkline(list(range(1000)), width=8) == "▁▂▃▄▅▆▇█"


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
    assert "no such folder; name a run's folder, such as logs/latest" in capsys.readouterr().err
    assert plot_log.main([str(tmp_path)]) == 2
    assert "has no file rank_0.log" in capsys.readouterr().err
    (tmp_path / "rank_0.log").write_text("nothing\n")
    assert plot_log.main([str(tmp_path)]) == 1
    assert "no log has a line such as" in capsys.readouterr().err


def test_json_has_the_numbers_and_draws_nothing(tmp_path, capsys):
    good = [(2.0, 100.0, 1.0)] * 4
    write(tmp_path, rank_0=good, rank_1=good, rank_2=[(float("nan"), 100.0, 60.0)] * 4)
    assert plot_log.main([str(tmp_path), "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    json_pages.check("plot_log.py", found)
    assert (said.err, found["folder"], sorted(os.listdir(tmp_path))) == (
        *("", str(tmp_path)),
        [f"rank_{rank}.log" for rank in range(3)],
    )
    assert found["slow"] == [{"rank": 2, "kind": "data_time", "time": 60.0, "median": 1.0}]
    point = {"step": 1, "loss": 2.0, "step_time": 100.0, "data_time": 1.0, "before_time": None}
    assert found["ranks"][0]["points"][0] == point and found["ranks"][2]["points"][3]["loss"] == "nan"
    assert found["ranks"][2]["median"] == {"step_time": 100.0, "data_time": 60.0, "before_time": None}


def test_json_of_logs_without_a_loss_is_no_document(tmp_path, capsys):
    (tmp_path / "rank_0.log").write_text("nothing\n")
    assert (plot_log.main([str(tmp_path), "--json"]), capsys.readouterr().out) == (1, "")


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
