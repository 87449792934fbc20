"""The time line of a run's page: which ranks it shows, how long its axis is, the phases, and who is silent."""

import json
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.diagnosis.bundle.masking import Masker
from tools.history import listing
from tools.pages import example_run, example_states
from tools.progress import lines, phases
from tools.progress.phases import Mark
from tools.run_page import bars, named, outliers, reading, rows, timeline
from tools.run_page.markup import Writer

PATTERNS = lines.load({})
BEGIN = 1769860800  # 2026-01-31 12:00:00 UTC


def moment(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(BEGIN + seconds))


def clock(seconds):
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(BEGIN + seconds))


def log(*steps):
    """A log with a line at each of so many seconds; the first one has no step."""
    words = ["begins", *(f"epoch: 1 step: {number + 1}, loss is 1.5" for number in range(len(steps) - 1))]
    return "".join(f"{clock(at)} {word}\n" for at, word in zip(steps, words))


def outcome(seconds, failed=None, also=(), **more):
    """seconds: of each rank; failed: which rank failed first."""
    members = {
        str(rank): {"seconds": one, "status": 0 if failed is None else 1 if rank in (failed, *also) else 143}
        for rank, one in enumerate(seconds)
    }
    first = None if failed is None else str(failed)
    also_failed = [str(rank) for rank in also]
    return {"exit": 0, "first_failure": first, "also_failed": also_failed, "members": members, **more}


@pytest.fixture
def run(tmp_path):
    """run(logs, outcome, ranks): what a page knows of such a run."""

    def make(logs=(), end=None, ranks=None):
        plan = [{"rank": rank, "device": 0, "log": f"rank_{rank}.log"} for rank in range(ranks or len(logs))]
        document = {
            "script": "x",
            "started": moment(0),
            "ranks": plan,
            "trainer": [],
            **({"outcome": end} if end else {}),
        }
        (tmp_path / "launch.json").write_text(json.dumps(document))
        for rank, text in enumerate(logs):
            (tmp_path / f"rank_{rank}.log").write_text(text)
        return reading.read(str(tmp_path), PATTERNS)

    return make


def html_of(data):
    return rows.html_of(data, Writer(Masker({})), named.of(data, outliers.find(data.curves)))


def names_of(text):
    """The names of the rows, from above."""
    return [re.sub("<.*?>", "", name) for name in re.findall(r'<div class="name">(.*?)</div>', text)]


# ---- which ranks -----------------------------------------------------------------------------------------------------


def test_the_time_line_knows_who_failed_first_and_the_grace_time(tmp_path):
    data = reading.read(example_run.make(str(tmp_path)), PATTERNS)
    line = timeline.of(data)
    first, second = (block.bars for block in line.blocks)
    assert (first[5].how, second[5].how) == ("first", "first")
    assert (first[2].how, second[2].how) == ("stopped", "stopped")
    assert round(first[2].end - first[2].stops, 1) == 10.0
    assert second[0].begin > first[0].end
    assert 8 < first[0].first_step < 14
    assert line.seconds == pytest.approx(272, abs=1)


@pytest.mark.slow
def test_the_slow_rank_has_a_row_and_the_others_are_one(tmp_path):
    (folder,) = example_states.make("straggler", str(tmp_path))
    data = reading.read(folder, PATTERNS)
    text = html_of(data)
    names = names_of(text)
    assert set(names[:2]) == {"rank 7", "rank 41"} and names[2:] == ["rank 0", "rank 63", "60 others"]
    assert "60 ended with 0" in text
    one = named.of(data, outliers.find(data.curves))[41]
    assert f"{named.chip(one)}rank 41</div>" in text and f">{'slow'}</div>" in text


def test_few_ranks_are_all_shown_in_their_order(run):
    text = html_of(run([log(0, 1, 2)] * 12, outcome([9.0] * 12)))
    assert names_of(text) == [f"rank {rank}" for rank in range(12)]


def test_of_many_failures_some_have_a_row_and_none_is_lost(run):
    data = run(end=outcome([5.0] * 100, failed=40, also=range(50, 90)), ranks=100)
    (block,) = timeline.of(data, [99]).blocks
    assert block.rows[:2] == [40, 50] and block.rows[-2:] == [0, 99]
    assert len(block.rows) == timeline.MOST_ROWS
    assert sorted([*block.rows, *block.others]) == list(range(100))
    assert "first" in html_of(data)


def test_a_rank_that_differs_in_a_hang_comes_first(tmp_path):
    (folder,) = example_states.make("hang", str(tmp_path))
    text = html_of(reading.read(folder, PATTERNS))
    assert re.search(r"rank-0. aria-hidden=.true.></i>rank 6</div>.*\n?.*hung elsewhere than the others</div>", text)


def test_a_named_rank_that_is_the_first_or_last_one_stands_once(run):
    data = run(end=outcome([5.0] * 20, failed=0), ranks=20)
    assert timeline.of(data, [0, 19]).blocks[0].rows == [0, 19]


@pytest.mark.slow
def test_of_65536_ranks_the_page_has_a_few_rows(run):
    data = run([log(0, 1, 2)], outcome([5.0] * 65536, failed=1000), ranks=65536)
    text = html_of(data)
    assert names_of(text) == ["rank 1000", "rank 0", "rank 65535", "65533 others"]
    assert len(text) < 20_000


# ---- the axis --------------------------------------------------------------------------------------------------------


def test_the_axis_goes_to_the_end_of_a_rank_that_has_no_row(run):
    data = run(end=outcome([34.0] * 31 + [53.0] + [34.0] * 32), ranks=64)
    line = timeline.of(data)
    assert 31 not in line.blocks[0].rows
    assert line.seconds == 53


def test_the_axis_goes_to_the_end_of_the_launch(run):
    end = outcome([34.0], ended=moment(60))
    end["members"]["mpirun"] = {"seconds": 60.0, "status": 0}
    line = timeline.of(run(end=end, ranks=1))
    assert (line.seconds, line.blocks[0].bars[0].begin, line.blocks[0].bars[0].end) == (60, 0, 34)


@pytest.mark.parametrize(
    ("seconds", "texts"),
    [
        (0.3, ["0", "0.05 s", "0.1 s", "0.15 s", "0.2 s", "0.25 s", "0.3 s"]),
        (34, ["0", "5 s", "10 s", "15 s", "20 s", "25 s", "30 s"]),
        (59, ["0", "10 s", "20 s", "30 s", "40 s", "50 s"]),
        (200, ["0", "30 s", "60 s", "90 s", "120 s", "150 s", "180 s"]),
        (533, ["0", "2 min", "4 min", "6 min", "8 min"]),
        (40_000, ["0", "2 h", "4 h", "6 h", "8 h", "10 h"]),
        (700_000, ["0", "2 d", "4 d", "6 d", "8 d"]),
    ],
)
def test_marks_are_round_and_have_units(seconds, texts):
    assert [text for _, text in bars.axis_marks(seconds)] == texts


@given(st.floats(0.1, 1e9))
def test_there_are_few_marks_and_all_are_on_the_axis(seconds):
    found = [at for at, _ in bars.axis_marks(seconds)]
    assert 3 <= len(found) <= 8 and found == sorted(found)
    assert found[0] == 0 and seconds / 2 < found[-1] <= seconds * 1.0001


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0 s"), (9.52, "9.5 s"), (60, "60 s"), (86.4, "86.4 s"), (99.97, "100 s"), (119.6, "2 min")),
        *((2110, "35 min 10 s"), (3600, "1 h"), (8100, "2 h 15 min"), (273_600, "3 d 4 h")),
    ],
)
def test_lengths_are_words(seconds, text):
    assert bars.duration(seconds) == text


# ---- attempts --------------------------------------------------------------------------------------------------------


def test_attempts_stand_one_under_the_other_with_how_each_ended(tmp_path):
    (folder,) = example_states.make("restarted", str(tmp_path))
    text = html_of(reading.read(folder, PATTERNS))
    first, second = text.split('<h3 class="attempt">')[1:]
    assert "Attempt 1 of 2" in first and "0 s – 38 s" in first
    assert "rank 5 failed first</span></h3>" in first
    assert "Attempt 2 of 2" in second and "ended well" in second
    assert names_of(first)[:8] == names_of(second)[:8] == [f"rank {rank}" for rank in range(8)]


def test_an_attempt_that_something_else_than_a_rank_ended(run):
    first = outcome([5.0] * 2, failed=None, ended=moment(9)) | {"first_failure": "scheduler"}
    second = outcome([5.0] * 2, ended=moment(19), lost_host="<node2>")
    text = html_of(run(end={**outcome([5.0] * 2, ended=moment(29)), "attempts": [first, second]}, ranks=2))
    assert "scheduler failed first" in text and "&lt;node2&gt; was lost" in text


def test_of_many_attempts_the_earlier_ones_are_short(run, tmp_path):
    earlier = [outcome([5.0] * 8, failed=number % 8, ended=moment(10 * number + 9)) for number in range(20)]
    data = run(end={**outcome([5.0] * 8, ended=moment(300)), "attempts": earlier}, ranks=8)
    blocks = timeline.of(data).blocks
    assert [len(block.rows) for block in blocks] == [*(1 if number % 8 == 0 else 2 for number in range(20)), 8]
    assert blocks[5].rows == [5, 0]


def test_one_attempt_has_no_heading(run):
    assert "Attempt" not in html_of(run(end=outcome([5.0] * 2), ranks=2))


# ---- phases ----------------------------------------------------------------------------------------------------------


def test_phases_of_a_log_are_parts_of_its_bar(run):
    text = (
        f"{clock(0)} begins\n"
        "[INFO] DISTRIBUTED(1,7f,python):2026-01-31-12:00:05.000.000 [x.cc:1] BuildCluster] Topology build timed out., "
        "retry(1/1200).\n"
        "[INFO] DISTRIBUTED(1,7f,python):2026-01-31-12:00:15.000.000 [x.cc:1] BuildCluster] Cluster is successfully "
        "initialized\n"
        "[INFO] COMPILER(1,7f,python):2026-01-31-12:00:16.000.000 [x.cc:1] Compile] Start compiling, phase: train.1\n"
        f"{clock(30)} epoch: 1 step: 1, loss is 2\n"
    )
    data = run([text] * 2, outcome([60.0] * 2))
    found = timeline.segments_of_log(f"{data.folder}/rank_0.log", lines.Kinds(PATTERNS), data.logs[0][0].first, 60.0)
    assert found == [
        timeline.Segment(phases.START, 0, 5),
        timeline.Segment(phases.JOIN, 5, 15),
        timeline.Segment(phases.PREPARE, 15, 16),
        timeline.Segment(phases.COMPILE, 16, 30),
        timeline.Segment(phases.STEPS, 30, 60),
    ]
    page = html_of(data)
    assert "<title>compiles: 16 s – 30 s</title>" in page and '<i class="compile"></i>' in page


def test_a_checkpoint_in_the_midst_of_steps_ends_with_the_next_step():
    marks = [Mark(phases.STEPS, 10), Mark(phases.SAVE, 20), Mark(phases.STEPS, 25), Mark(phases.SAVE, None, True)]
    found = [(one.phase, one.begin, one.end) for one in timeline.segments_of_marks(marks, 0, 40)]
    assert found == [("start", 0, 10), ("steps", 10, 20), ("save", 20, 25), ("steps", 25, 40)]


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(phases.PHASES), st.none() | st.floats(-50, 200), st.booleans())),
    st.floats(0, 99),
)
def test_phases_follow_one_another_whatever_the_times_are(told, until):
    found = timeline.segments_of_marks([Mark(*one) for one in told], 0, until)
    ends = [0.0, *(one.end for one in found)]
    assert [one.begin for one in found] == ends[:-1]
    assert ends == sorted(ends) and (ends[-1] == until or not found)
    wide = timeline.wide_segments(found, 100)
    assert not found or (wide[0].begin, wide[-1].end) == (0, until)


def test_a_log_without_times_gives_a_plain_bar(run):
    page = html_of(run(["epoch: 1 step: 1, loss is 1\n"] * 2, outcome([5.0] * 2)))
    assert '<rect class="plain"' in page and "in which phase is not known" in page
    assert '<rect class="steps"' not in page


def test_the_middle_of_a_huge_log_is_not_read(run):
    text = log(0, 1) + "x" * 100 + "\n" + "y" * 99 + "\n"
    data = run([text + "z" * 79 + "\n" + ("a" * 79 + "\n") * 60_000 + f"{clock(50)} Saving model to ./a.ckpt\n"] * 2)
    found = timeline.segments_of_log(f"{data.folder}/rank_0.log", lines.Kinds(PATTERNS), BEGIN, 60.0)
    assert [(one.phase, one.begin) for one in found] == [("start", 0), ("steps", 1), ("save", 50)]


# ---- silence ---------------------------------------------------------------------------------------------------------


def test_a_rank_whose_log_ended_early_is_named_and_its_bar_is_pale(run):
    talks = log(*range(0, 100, 5))
    data = run([talks, talks, log(0, 5, 31), talks], outcome([100.0] * 4))
    assert timeline.ranks(data) == [2]
    assert named.of(data, [])[2].why == (named.SILENT,)
    assert timeline.of(data).blocks[0].bars[2].quiet == 31
    page = html_of(data)
    assert page.count("no line after 31 s</div>") == 1 and '<rect class="quiet"' in page


@pytest.mark.parametrize(
    ("last", "ended", "silent"),
    [
        (31, 100.0, True),
        (61, 100.0, True),
        (62, 100.0, False),  # a third of the run later is the last line of the middle rank
        (31, 41.0, False),  # it ended soon after
        (31, 41.5, True),
    ],
)
def test_who_is_silent(run, last, ended, silent):
    talks = log(*range(0, 100, 5))
    data = run([talks, talks, log(0, last), talks], outcome([100.0, 100.0, ended, 100.0]))
    assert timeline.ranks(data) == ([2] if silent else [])


def test_nobody_is_silent_in_a_short_run_or_where_all_are(run):
    talks = log(*range(10))
    assert timeline.ranks(run([talks, talks, log(0, 1), talks], outcome([20.0] * 4))) == []
    assert timeline.ranks(run([log(0, 5)] * 4, outcome([100.0] * 4))) == []


def test_of_ranks_that_are_all_silent_it_is_said_once(run):
    page = html_of(run([log(0, 5, 30), log(0, 5, 31)] * 10, outcome([100.0] * 20, stopped_by="hang")))
    assert "No rank has a line after 31 s." in page and "no line after 30 s</div>" not in page
    assert '<path class="quiet"' in page and page.count('<rect class="quiet"') == 2


def test_a_result_without_a_time_does_not_hide_when_the_last_line_came(run):
    data = run([log(0, 5, 30) + "epoch: 1, accuracy on held-out data: 97.21%\n"] * 2, outcome([100.0] * 2))
    assert timeline.of(data).blocks[0].bars[0].quiet == 30


# ---- many ranks as one -----------------------------------------------------------------------------------------------


def bar(begin, end, first=None, stops=None, quiet=None):
    return timeline.Bar(begin=begin, end=end, how="good", status=0, first_step=first, stops=stops, quiet=quiet)


def test_density_counts_what_ranks_do_at_each_moment():
    found = bars.density_of([bar(0, 10, first=4), bar(0, 8, first=2, stops=6), bar(2, 10)], 5)
    assert found.moments == [1, 3, 5, 7, 9]
    assert found.layers == {
        "steps": [0, 1, 2, 1, 1],
        "before": [2, 1, 0, 0, 0],
        "runs": [0, 1, 1, 1, 1],
        "stopping": [0, 0, 0, 1, 0],
    }


def test_density_knows_who_writes_no_line():
    found = bars.density_of([bar(0, 10, first=2, quiet=4, stops=8), bar(0, 10, quiet=6)], 5)
    assert found.layers == {
        "steps": [0, 1, 0, 0, 0],
        "before": [1, 0, 0, 0, 0],
        "runs": [1, 1, 1, 0, 0],
        "quiet": [0, 0, 1, 2, 1],
        "stopping": [0, 0, 0, 0, 1],
    }


# In microseconds: below that, times of a clock say nothing, and the middle of a part is not a number of its own.
SECONDS = st.integers(0, 50 * 10**6).map(lambda number: number / 1e6)
SHARE = st.none() | st.floats(0, 1)
SPANS = st.tuples(SECONDS, SECONDS, SHARE, SHARE, SHARE)


@pytest.mark.slow
@given(st.lists(SPANS, min_size=1, max_size=20))
def test_a_rank_does_one_thing_at_a_time(spans):
    made = []
    for begin, length, *shares in spans:
        end = begin + length
        made.append(bar(begin, end, *(None if share is None else begin + share * length for share in shares)))
    found = bars.density_of(made, 40)
    for part, at in enumerate(found.moments):
        if any(abs(edge - at) < 1e-6 for one in made for edge in (one.begin, one.end)):
            continue  # on which side of it the moment is, rounding decides
        running = sum(one.begin < at <= one.end for one in made)
        assert sum(layer[part] for layer in found.layers.values()) == running


def test_a_short_attempt_of_many_ranks_in_a_long_run_can_be_seen():
    svg = bars.draw_many("all", [bar(40_000, 40_001, first=40_000.5)] * 9, 80_000).svg
    assert '<svg x="50.0%" width="0.25%"' in svg and svg.count("<path") == 2


def test_the_numbers_are_under_the_pointer_and_for_screen_readers(run):
    data = run([log(0, 1, 45)] * 20, outcome([48.0] * 20))
    text = html_of(data)
    assert "<title>25 s; takes steps: 18</title>" in text
    assert 'aria-label="18 others: 18 ended with 0, ends 48 s, first numbers 1 s"' in text
    assert 'aria-label="rank 0: 0 s – 48 s, ended with 0, exit code 0, first numbers after 1 s' in text


def test_a_run_that_goes_on_ends_now(run):
    data = run([log(0, 1, 2)] * 2)
    goes_on = data.replace(run=data.run.replace(state=listing.RUNNING))
    (block,) = timeline.of(goes_on, now=BEGIN + 100.0).blocks
    assert [(one.how, one.end, one.quiet) for one in block.bars.values()] == [("runs", 100, 2)] * 2


def test_without_times_there_is_no_time_line(run):
    data = run(end=outcome([5.0]), ranks=1)
    assert html_of(data.replace(run=data.run.replace(started="yesterday"))) == ""
    assert html_of(data.replace(attempts=[data.attempts[0].replace(members={})])) == ""
