"""The counting of `make preflight-rounds`: a round without results, or a fault that was missed, is a failure."""

import pytest

from tests.field import preflight

GOOD = "1..2\nok 1 faults: an MTU\nok 2 faults: a full log folder in 12ms\n"


@pytest.fixture
def rounds(monkeypatch, in_process):
    def play(*texts):
        left = list(texts)
        monkeypatch.setattr(preflight.subprocess, "run", lambda *_, **__: Played(left.pop(0)))
        return in_process(preflight.main, str(len(texts)))

    return play


class Played:
    def __init__(self, text):
        self.stdout = text


def test_faults_that_were_always_named_alone_are_a_success(rounds):
    status, out, _ = rounds(GOOD, GOOD)
    assert (status, out.splitlines()[-1]) == (0, "4 times in 2 rounds, 0 of them not as expected, 0 skipped")
    assert "   2 of 2  a full log folder\n" in out


@pytest.mark.parametrize(
    ("text", "last"),
    [
        (GOOD.replace("ok 1", "not ok 1"), "4 times in 2 rounds, 1 of them not as expected, 0 skipped"),
        (GOOD[: GOOD.index("ok 2")], "3 times in 2 rounds, 0 of them not as expected, 0 skipped"),
        ("", "2 times in 2 rounds, 0 of them not as expected, 0 skipped"),
    ],
    ids=["missed", "not made", "no round"],
)
def test_one_that_was_missed_or_not_made_is_a_failure(rounds, text, last):
    status, out, _ = rounds(GOOD, text)
    assert (status, out.splitlines()[-1]) == (1, last)


def test_what_cannot_be_made_here_is_counted_apart(rounds):
    text = GOOD.replace("an MTU", "an MTU # skip needs root")
    status, out, _ = rounds(text, text)
    assert status == 0 and "   0 of 2  an MTU, skipped 2 times\n" in out


@pytest.mark.parametrize("words", [[], ["0"], ["x"], ["1", "2"]])
def test_another_command_line_is_refused(in_process, monkeypatch, words):
    monkeypatch.setattr(preflight.subprocess, "run", None)
    assert preflight.main(words) == 2
