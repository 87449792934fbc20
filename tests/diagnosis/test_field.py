"""The answers about real failures, of which field_cases.yaml has the right ones; and how answers are judged.

The logs are not ours, so they are not here: FIELD_FAULTS names the folder that holds them, a folder per case.
`python -m tests.field` judges by the same rules and counts.
"""

import os
from pathlib import Path

import pytest
import yaml
from logs.known import ENTRIES

from tests.field import judging, main

FIELD = os.environ.get("FIELD_FAULTS")
CASES = yaml.safe_load((Path(__file__).parent / "field_cases.yaml").read_text(encoding="utf-8"))
needs_cases = pytest.mark.skipif(not FIELD, reason="FIELD_FAULTS does not name a folder of real failures")
OPEN_ROOT = {"roots": [[], [0], [None]], "certainty": [None, "sure", "likely", "guess"]}


@needs_cases
@pytest.mark.parametrize("name", CASES)
def test_a_real_failure(name):
    found = judging.judged(FIELD, name, CASES[name], ENTRIES)
    assert found.outcome == judging.RIGHT, str(found)


@needs_cases
def test_every_case_has_a_right_answer():
    assert sorted(CASES) == judging.cases_below(FIELD)


# --- the judge --------------------------------------------------------------------------------------------------------


@pytest.fixture
def judge(tmp_path):
    """judge(logs, answer): how good the answer about these logs is."""

    def judge(logs, answer):
        for name, text in logs.items():
            (tmp_path / "case").mkdir(exist_ok=True)
            (tmp_path / "case" / name).write_text(text, encoding="utf-8")
        return judging.judged(str(tmp_path), "case", answer, ENTRIES).outcome

    return judge


PORT = {"rank_0.log": "RuntimeError: bind: Address already in use\n"}
ABORT = {"rank_0.log": "terminate called after throwing an instance of 'std::runtime_error'\n"}
IN_JOB = "[INFO] HCCL(7,python):2026-01-01-00:00:00.000.000 [a.cc:1] [7]SetupAgent rankNum[2], rank[{rank}]\n"
TWO = {
    "rank_0.log": IN_JOB.format(rank=0),
    "rank_1.log": IN_JOB.format(rank=1)
    + 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\nKeyError: 7\n',
}


@pytest.mark.parametrize(
    ("logs", "answer", "outcome"),
    [
        (PORT, {"codes": ["port-in-use"]}, judging.RIGHT),
        (PORT, {"codes": ["aborted"], "vague_codes": ["port-in-use"]}, judging.VAGUE),
        (PORT, {"codes": ["aborted"]}, judging.WRONG_CAUSE),
        (PORT, {"codes": ["TODO"]}, judging.OPEN),
        (PORT, {"cause_words": ["port"]}, judging.RIGHT),
        (PORT, {"cause_words": ["printer"], "vague_words": ["port"]}, judging.VAGUE),
        (PORT, {"cause_words": ["printer"]}, judging.WRONG_CAUSE),
        (PORT, {"cause_words": ["already in use"]}, judging.WRONG_CAUSE),  # of the log, not of the answer
        (PORT, {"cause_words": ["already in use"], "quoted": True}, judging.RIGHT),
        (PORT, {"codes": ["port-in-use"], "says": ["printer"]}, judging.VAGUE),
        (PORT, {"codes": ["port-in-use"], "never": ["port"]}, judging.WRONG_CAUSE),
        (ABORT, {"codes": ["other"]}, judging.VAGUE),  # that entry says itself that it is
        ({"rank_0.log": "epoch: 1 step: 1, loss is 2.3\n"}, {"cause_words": ["port"]}, judging.UNKNOWN),
    ],
)
def test_a_cause_is_judged_by_its_code_or_by_words_of_ours(judge, logs, answer, outcome):
    assert judge(logs, OPEN_ROOT | answer) == outcome


@pytest.mark.parametrize(
    ("roots", "certainty", "outcome"),
    [
        ([[1]], ["sure", "likely"], judging.RIGHT),
        ([[1]], ["guess"], judging.VAGUE),
        ([[0]], ["sure"], judging.WRONG_SURE),
        ([[]], [None], judging.WRONG_SURE),
    ],
)
def test_a_root_is_judged_by_its_ranks_and_how_sure_it_is(judge, roots, certainty, outcome):
    assert judge(TWO, {"roots": roots, "certainty": certainty, "cause_words": ["KeyError"], "quoted": True}) == outcome


def test_the_command_counts(tmp_path, monkeypatch, capsys):
    (tmp_path / "1-port").mkdir()
    (tmp_path / "1-port" / "rank_0.log").write_text(PORT["rank_0.log"], encoding="utf-8")
    (tmp_path / "answers.yaml").write_text(
        "1-port: {roots: [[], [0]], certainty: [null, sure, likely, guess], codes: [port-in-use]}\n", "utf-8"
    )
    words = ["field", str(tmp_path), "--answers", str(tmp_path / "answers.yaml")]
    monkeypatch.setattr("sys.argv", words)
    assert main.main() == 0
    assert "port-in-use" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [*words, "--row", "mine"])
    assert main.main() == 0
    assert capsys.readouterr().out == "| mine | 1 | 1 | 0 | 0 | 0 | 0 | 0 |\n"
    monkeypatch.setattr("sys.argv", [*words, "--case", "2-none"])
    assert main.main() == 2
