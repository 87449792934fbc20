"""The curves of a run's page: which lines a chart has and in which colour, and what is a sentence instead."""

import json
import math
import random
import re

import pytest

from hccl_tools.common import language
from tools.pages import example_states
from tools.progress import lines, series
from tools.run_page import charts, curves, document, figures, named, outliers, reading, told
from tools.run_page.reading import Curve

STEPS = list(range(1, 201))


def curve(values, steps=None):
    return Curve(steps=list(steps or range(1, len(values) + 1)), values=[float(value) for value in values])


def noise(level, seed, height=0.1):
    numbers = random.Random(seed)
    return curve([level * (1 + height * numbers.random()) for _ in STEPS])


def chart_of(field, ranks, apart=(), names=None):
    return charts._chart(field, ranks, list(apart), names or {})


def names_of(ranks):
    return {rank: named.Named(rank=rank, colour=at if at < 8 else None, why=("slow",)) for at, rank in enumerate(ranks)}


@pytest.fixture
def runs(tmp_path):
    """runs(state): its runs, as they are read."""

    def read(state, **changes):
        jobs = [job.replace(**changes) for job in example_states.STATES[state]]
        return [reading.read(example_states._run(job, str(tmp_path)), lines.load({})) for job in jobs]

    return read


def of_run(data):
    found = outliers.find(data.curves)
    return charts.of_run(data, found, named.of(data, found))


# ---- which lines there are -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_of_64_ranks_only_those_that_matter_have_a_line_and_each_has_one_colour(runs):
    found = of_run(runs("straggler")[0])
    drawn = {chart.field: [line.key for line in chart.lines] for chart in found.charts}
    assert drawn["loss"] == ["rank-7", "median"] and drawn["data_ms"] == ["rank-41", "median"]
    assert drawn["step_ms"] == ["median"] and drawn["accuracy %"] == ["rank-0"]
    styles = {(line.key, line.style) for chart in found.charts for line in chart.lines}
    assert len(styles) == len({key for key, _ in styles})
    assert [(key, style) for key, style, _ in found.keys[2:]] == [("rank-41", "rank-0"), ("rank-7", "rank-1")]
    assert [name for _, _, name in found.keys] == [
        *("median of 64 ranks", "5 to 95 % of the others"),
        *("rank 41 · slow", "rank 7 · drifts"),
    ]


def test_the_rank_that_failed_first_has_a_thin_line_in_each_chart(runs):
    found = of_run(runs("failed")[0])
    thin = [[line.key for line in chart.lines if line.thin] for chart in found.charts if chart.band]
    assert thin and all(keys == ["rank-5"] for keys in thin)


def test_of_two_ranks_each_has_a_line_and_no_median():
    chart = chart_of("loss", {0: curve([3, 2, 1, 1]), 1: curve([3, 2, 2, 1])}, (), names_of([0, 1]))
    assert chart.band is None
    assert [(line.key, line.style) for line in chart.lines] == [("rank-0", "rank-0"), ("rank-1", "rank-1")]


def test_two_ranks_without_names_are_told_apart_by_dashes():
    chart = chart_of("accuracy %", {0: curve([60, 70, 80, 90]), 4: curve([61, 72, 83, 91])})
    assert [(line.label, line.dashed) for line in chart.lines] == [("rank 0", False), ("rank 4", True)]


def test_ranks_without_a_colour_have_a_plain_line_where_there_are_few_others():
    slow = list(range(10, 20))
    names = names_of([*slow, 3])
    ranks = {rank: noise(30 if rank in slow else 5, rank) for rank in range(32)}
    chart = chart_of("data_ms", ranks, slow, names)
    assert [line.key for line in chart.lines] == [*(f"rank-{rank}" for rank in slow[:8]), "median"]
    assert chart.notes[-1] == "Different, too, but without a line: ranks 18,19."
    assert "Highest" not in " ".join(chart.notes)  # they are not above the others by a peak
    chart = chart_of("loss", {rank: noise(9 if rank == 3 else 2, rank) for rank in range(32)}, [3], names)
    assert [(line.key, line.style) for line in chart.lines] == [("rank-3", "plain"), ("median", "median")]


def test_the_band_is_of_the_others_and_the_median_of_all():
    ranks = {rank: curve([100 if rank >= 5 else rank] * 4) for rank in range(8)}
    chart = chart_of("loss", ranks, [5, 6, 7], names_of([5, 6, 7]))
    assert chart.band == ([0] * 4, [4] * 4) and chart.lines[-1].y == [3.5] * 4


def test_two_or_three_points_have_no_band_between_them():
    chart = chart_of("loss", {rank: curve([3, 2 + rank, 1]) for rank in range(8)})
    assert chart.band is None and [line.key for line in chart.lines] == ["median"]
    assert figures._document(chart)["points"] == "only"


# ---- what the lines are ----------------------------------------------------------------------------------------------


def test_times_that_jump_are_smoothed_and_each_step_stays_to_be_seen():
    ranks = {rank: noise(100, rank) for rank in range(8)}
    ranks[3] = curve([value + 60 for value in ranks[3].values])
    chart = chart_of("step_ms", ranks, [3], names_of([3]))
    line, median = chart.lines
    assert chart.window >= 5 and line.raw == [float(f"{value:.5g}") for value in ranks[3].values]

    def jumps(column):
        return sum(abs(after - before) for before, after in zip(column, column[1:]))

    assert jumps(line.y) < jumps(line.raw) / 3 and median.raw is None and max(chart.band[1]) > 108
    assert "rolling median of" in chart.notes[0]


@pytest.mark.parametrize("field", ["loss", "step_ms"])
def test_a_trend_is_not_smoothed(field):
    ranks = {rank: curve([math.exp(-step / 50) + rank / 1000 for step in STEPS]) for rank in range(4)}
    assert chart_of(field, ranks).window == 1


def test_a_loss_is_never_smoothed():
    assert chart_of("loss", {rank: noise(2, rank) for rank in range(4)}).window == 1


@pytest.mark.slow
def test_the_band_of_many_steps_keeps_peaks():
    values = [9.5 if step == 7777 else 1.5 for step in range(10_000)]
    drawn = curves.draw({rank: curve(values) for rank in range(20)}, [])
    assert max(drawn.high) == 9.5 and max(drawn.middle) < 3 and len(drawn.steps) <= curves.MOST_POINTS


def test_smoothing_leaves_gaps_and_ends():
    assert curves.smoothed([1.0, None, 9.0, 1.0, 1.0, 1.0, 5.0], 3) == [1.0, None, 1.0, 1.0, 1.0, 1.0, 5.0]


def test_a_first_step_that_compiled_does_not_flatten_the_others():
    ranks = {rank: curve([30_000, *noise(100, rank).values]) for rank in range(4)}
    chart = chart_of("step_ms", ranks)
    assert 100 < chart.top < 120 and chart.notes[0] == "Step 1 took 30 s; the axis leaves it out."
    assert chart_of("step_ms", {rank: noise(100, rank) for rank in range(4)}).top is None


def test_a_single_peak_above_the_band_is_named():
    ranks = {rank: noise(100, rank) for rank in range(64)}
    ranks[9].values[76] = 931.0
    notes = chart_of("step_ms", ranks).notes
    assert [note for note in notes if note == "Highest: 931 ms, rank 9 at step 77; it is above the band."]


def test_nan_and_inf_are_marked_where_they_are():
    ranks = {rank: curve([3, 2, 2, 1, 1]) for rank in range(4)}
    ranks[2] = curve([3, math.nan, 2, math.inf, 1])
    chart = chart_of("loss", ranks, [2], names_of([2]))
    assert chart.lines[0].bad == [1, 3] and chart.lines[1].bad == []
    assert "A cross: the value is not a number (nan or inf)." in chart.notes
    every = chart_of("loss", {rank: curve([3, math.nan, 2]) for rank in range(4)})
    assert every.lines[0].y == [3, None, 2] and every.lines[0].bad == [1]


def test_nan_of_a_rank_without_a_line_has_no_cross():
    ranks = {rank: curve([3, math.nan if rank == 2 else 2, 1]) for rank in range(4)}
    assert "cross" not in " ".join(chart_of("loss", ranks).notes)


# ---- what needs no chart ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "ranks", "sentence"),
    [
        ("lr", {0: [0.1] * 3, 1: [0.1] * 3}, "Learning rate: 0.1 in all steps from 1 to 3."),
        ("lr", {0: [0.1, 0.1, 0.05]}, None),
        ("accuracy %", {0: [96.4]}, "accuracy on held-out data: 96.4 % at step 1, one measurement."),
        ("loss", {0: [1], 1: [2]}, "Loss: 1 to 2 at step 1, one measurement of each of 2 ranks."),
        ("loss", {0: [1, math.nan], 1: [1, 1]}, None),
        ("loss", {0: [math.nan, math.inf]}, "Loss: nan or inf in all steps from 1 to 2."),
        ("step_ms", {0: [1250, 1250]}, "Time of a step: 1.25 s in all steps from 1 to 2."),
    ],
)
def test_a_column_without_news_is_a_sentence(field, ranks, sentence):
    assert told.of_ranks(field, {rank: curve(values) for rank, values in ranks.items()}) == sentence


def test_columns_of_runs_that_are_constant_are_compared_in_a_sentence():
    columns = {0: curve([0.1, 0.1]), 1: curve([0.2, 0.2])}
    assert told.of_runs("lr", columns, ["a", "b"]) == "Learning rate, the same in all steps of a run: a 0.1, b 0.2."
    assert told.of_runs("lr", {**columns, 1: curve([0.2, 0.1])}, ["a", "b"]) is None
    once = {0: curve([96]), 1: curve([97.5])}
    said = told.of_runs("accuracy %", once, ["a", "b"])
    assert said == "accuracy on held-out data, one measurement of each run: a 96 %, b 97.5 %."


def test_samples_a_second_have_a_chart_only_where_they_say_more_than_the_time_of_a_step():
    times = {0: curve([100, 110, 105])}
    said = told.of_speed({0: curve([320, 290.9, 304.8])}, times)
    assert said == "Samples a second: median 304.8/s, 290.9/s to 320/s. The time of a step shows the same."
    assert told.of_speed({0: curve([320, 290.9, 200])}, times) is None
    assert told.of_speed({0: curve([320, 290.9, math.nan])}, times) is None
    assert told.of_speed({0: curve([320, 290.9])}, times) is None
    assert told.of_speed({0: curve([320, 290.9, 304.8])}, {}) is None


# ---- restarts and times ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_chart_knows_where_a_restart_began(runs):
    data = runs("restarted")[0]
    assert told.restarts(data) == {1: 181}
    text = document.of_runs([data])
    found = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    assert found["words"]["restart"] == [[181, "restart 1", "1"]]


def test_a_log_has_the_times_of_some_steps_and_of_the_last_one():
    text = [f"2026-01-31 12:00:{step // 2:02},500 - epoch: 1 step: {step}, loss is 1.5" for step in range(1, 51)]
    times = series.Reader(lines.load({})).of_lines(text).times
    begin = times[0][1]
    assert [(place[1], at - begin) for place, at in times] == [(1, 0), (17, 8), (33, 16), (49, 24), (50, 25)]


def test_the_clock_of_a_run_never_goes_back(runs):
    data = runs("restarted")[0]
    clock = told.clock_of(data)
    seconds = [clock.at(step) for step in range(1, 401)]
    assert seconds == sorted(seconds) and seconds[0] == 0 and 35 < seconds[-1] < 80
    early = data.logs[0][0].replace(times=(((1, 1), 50.0), ((1, 9), 58.0)))
    late = data.logs[0][1].replace(times=(((1, 5), 10.0), ((1, 13), 14.0)))
    set_back = told.clock_of(data.replace(logs={0: [early, late]}))
    assert (set_back.steps, set_back.seconds) == ([1, 5, 13], [0, 0, 4])
    known = told.Clock(steps=[1, 11, 21], seconds=[0.0, 5.0, 6.0])
    assert [known.at(step) for step in (0, 6, 16, 99)] == [0, 2.5, 5.5, 6]


def test_runs_are_compared_by_time_only_where_all_logs_have_times(runs):
    read = runs("compared")
    found = charts.of_runs(read, ["a", "b", "c"])
    assert found.timed and all(line.t for chart in found.charts for line in chart.lines)
    silent = {rank: [log.replace(times=()) for log in logs] for rank, logs in read[1].logs.items()}
    found = charts.of_runs([read[0], read[1].replace(logs=silent), read[2]], ["a", "b", "c"])
    assert not found.timed and not any(line.t for chart in found.charts for line in chart.lines)
    assert "by time" not in charts.html_of(found)


def test_a_run_has_one_colour_and_its_label_in_all_charts(runs):
    found = charts.of_runs(runs("compared"), ["lr 0.1", "lr 0.2", "</script>"])
    assert [name for _, _, name in found.keys] == ["lr 0.1", "lr 0.2", "</script>"]
    for chart in found.charts:
        assert [line.style for line in chart.lines] == ["rank-0", "rank-1", "rank-2"]
    assert charts.html_of(found).count("</script>") == 1


# ---- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        *((105, "ms", "105 ms"), (1234, "ms", "1.234 s"), (5_000_000, "ms", "5,000 s"), (0, "ms", "0 ms")),
        *((96.4, "%", "96.4 %"), (12345.6, "/s", "12,346/s"), (0.20414, "", "0.2041"), (0.00002, "", "2e-05")),
    ],
)
def test_numbers_have_units(value, unit, text):
    assert told.shown(value, unit) == text


@pytest.mark.slow
def test_a_chart_in_words(runs):
    chart = next(chart for chart in of_run(runs("straggler")[0]).charts if chart.field == "data_ms")
    assert re.fullmatch(
        r"Time of a step that waits for data, steps 1 to 399; rank 41: from 35\.\d ms to 35\.\d+ ms, "
        r"lowest 35\.\d+ ms, highest 3\d(\.\d+)? ms; median: .*\.",
        figures.text_of(chart),
    )


def test_a_note_of_all_charts_is_said_once(runs):
    text = charts.html_of(of_run(runs("failed")[0]))
    assert text.count("rolling median") == 1 and text.index("rolling median") < text.index("<figure>")


def test_a_run_whose_columns_are_all_constant_has_sentences_and_no_chart(runs):
    data = runs("good")[0]
    flat = {"lr": {rank: curve([0.1, 0.1]) for rank in range(8)}}
    text = charts.html_of(of_run(data.replace(curves=flat, metrics=[])))
    assert "Learning rate: 0.1 in all steps" in text and "<figure>" not in text and "data-chart" not in text


def test_chinese(runs, monkeypatch):
    monkeypatch.setenv("LAUNCH_LANG", "zh")
    language._catalogue.cache_clear()
    try:
        text = charts.html_of(of_run(runs("failed")[0]))
    finally:
        language._catalogue.cache_clear()
    assert "中位数" in text and not re.search("rolling|Click|from |lowest", re.sub(r"(?s)<script.*", "", text))
