"""Logs that grow: no line is lost between two looks, and steps are timed by when the log was written."""

import os

import pytest

from tools.progress import lines
from tools.progress.ranks import RankProgress
from tools.progress.tails import FIRST, NEWEST, Patterns, Tail

STEP = "epoch: 1 step: {}, step time is 25 ms\n"


@pytest.fixture
def patterns():
    return Patterns(lines.load({}))


@pytest.fixture
def log(tmp_path):
    """log(text): adds the text to a log; log.path: its path."""

    def add(text):
        with open(add.path, "ab") as file:
            file.write(text if isinstance(text, bytes) else text.encode())

    add.path = str(tmp_path / "rank_0.log")
    return add


@pytest.mark.slow
@pytest.mark.parametrize("at", range(1, len(STEP.format(12))))
def test_a_line_that_is_written_in_two_pieces_is_read_whole(log, patterns, at):
    tail, line = Tail(log.path), STEP.format(12)
    log(STEP.format(11))
    assert tail.look(patterns)["step"] == 11
    log(line[:at])
    assert tail.look(patterns) == {}
    log(line[at:])
    assert tail.look(patterns) == {"epoch": 1, "step": 12, "step_ms": 25.0}


def test_a_progress_bar_counts_without_an_end_of_line(log, patterns):
    tail = Tail(log.path)
    log("\r 10%|#   | 1/10 [00:01<00:10,  2.00it/s]\r 20%|##  | 2/10 [00:01<00:10,  2.00it/s]")
    assert tail.look(patterns)["step"] == 2
    log("\r 30%|### | 3/10 [00:01<00:10,  2.00it/s]")
    assert tail.look(patterns)["step"] == 3


def test_of_a_log_that_grows_fast_the_newest_lines_are_read(log, patterns, monkeypatch):
    tail, read = Tail(log.path), []
    pread = os.pread
    monkeypatch.setattr("tools.progress.tails.os.pread", lambda *words: read.append(words[1]) or pread(*words))
    for number in range(1, 20):
        log(STEP.format(number) * 10000)
        assert tail.look(patterns)["step"] == number
    assert read == [FIRST, *[NEWEST] * 18]


def test_a_step_that_has_no_time_is_timed_by_when_the_log_was_written(log, patterns):
    """Looks every 2 s at a rank that writes every 2.5 s would see 50 steps a second, then 25."""
    rank = RankProgress(0, log.path)
    for number in range(1, 9):
        log(f"epoch: 1 step: {number * 100}, loss is 1\n")
        written = 1000 + 2.5 * number
        os.utime(log.path, (written, written))
        rank.look(patterns, written + written % 2)
        assert rank.step_ms == (None if number == 1 else pytest.approx(25))


def test_a_clock_that_is_set_back_begins_anew(log, patterns):
    rank = RankProgress(0, log.path)
    for step, written in ((100, 1000), (200, 1002), (300, 400), (400, 404)):
        log(f"epoch: 1 step: {step}, loss is 1\n")
        os.utime(log.path, (written, written))
        rank.look(patterns, 0.0)
    assert rank.step_ms == pytest.approx(40) and rank.steps_done == 300


@pytest.mark.parametrize(
    ("places", "done"),
    [
        ([(1, 3), (2, 5)], 12),  # between two looks an epoch may pass
        ([(1, 8), (2, 2), (4, 2)], 24),
        ([(1, 8), (1, 9), (1, 9)], 1),
        ([(0, 9), (1, 1)], 2),
        ([(3, 9), (1, 2)], 2),  # a restart
    ],
)
def test_where_the_steps_of_an_epoch_are_known_those_of_all_epochs_count(log, places, done):
    rank = RankProgress(0, log.path)
    for epoch, step in places:
        rank.take({"epoch": epoch, "step": step, "steps": 10}, 0.0)
    assert rank.steps_done == done


@pytest.mark.parametrize(
    ("places", "done"),
    [
        ([(1, 3), (2, 5)], 2),  # they may count on
        ([(1, 8), (2, 2), (3, 5)], 7),  # they began anew, and do so again
        ([(1, 8), (2, 12), (3, 25)], 17),
    ],
)
def test_where_they_are_not_known_steps_that_went_back_once_begin_anew_in_each_epoch(log, places, done):
    rank = RankProgress(0, log.path)
    for epoch, step in places:
        rank.take({"epoch": epoch, "step": step}, 0.0)
    assert rank.steps_done == done


def test_steps_of_the_whole_run_count_on(log):
    rank = RankProgress(0, log.path)
    for epoch, step in [(1, 90), (2, 150), (3, 201)]:
        rank.take({"epoch": epoch, "epochs": 10, "step": step, "steps": 1000}, 0.0)
    assert rank.steps_done == 111
    for steps in (0, 100, 1000):  # of an epoch, or of the run
        rank = RankProgress(0, log.path)
        for epoch, step in [(2, 190), (3, 250)]:
            rank.take({"epoch": epoch, "epochs": 10, "step": step, "steps": steps}, 0.0)
        assert rank.steps_done == 60


def test_a_line_that_a_rank_prints_seldom_is_found_once_in_a_while(log, patterns):
    tail = Tail(log.path)
    found = {}
    for number in range(40):
        log(
            f"{STEP.format(number)}epoch: 1, accuracy on held-out data: {number}%\n"
            if number > 3
            else STEP.format(number)
        )
        found.update(tail.look(patterns))
    assert found["percent"] > 20
