"""The attempts of a restarted job on its page: how far each came, which restarts were in vain, how many per cause."""

import html
import json
import re
from pathlib import Path

import pytest

from tools.pages import example_run
from tools.progress import lines
from tools.run_page import document, reading

FIRST = {"steps": 600, "reached": 600, "counted": False, "error": "RuntimeError: no memory at 0x7f01"}
LAST = {"steps": 0, "counted": True, "error": "RuntimeError: no memory at 0x9a02", "no_restart": "no step further <b>"}


@pytest.fixture
def section(tmp_path):
    """section(FIRST, LAST): the text of the section about attempts; of both: what launch.json has of progress."""
    folder = example_run.make(str(tmp_path))
    for log in Path(folder).rglob("rank_*.log"):
        log.write_text("epoch: 1 step: 1, loss is 3.0\n")  # a page for each question: short logs
    with open(f"{folder}/launch.json", encoding="utf-8") as file:
        plan = json.load(file)

    def make(first, last):
        plan["outcome"]["exit"] = 1
        for holder, progress in ((plan["outcome"]["attempts"][0], first), (plan["outcome"], last)):
            holder.pop("progress", None)
            if progress is not None:
                holder["progress"] = progress
        with open(f"{folder}/launch.json", "w", encoding="utf-8") as file:
            json.dump(plan, file)
        text = document.of_runs([reading.read(folder, lines.load({}))])
        (found,) = re.findall(r'<section[^>]*id="attempts".*?</section>', text, re.DOTALL)
        assert "<b>" not in found
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", found)).split())

    return make


def test_each_attempt_says_how_far_it_came_and_whether_its_restart_was_in_vain(section):
    text = section(FIRST, LAST)
    assert "attempt from – to steps without progress why it ended exit code 1 " in text
    assert "(600 made) no" in text and "(0 made) yes" in text


def test_attempts_per_cause_count_errors_that_differ_in_numbers_as_one(section):
    assert "Attempts per cause: 2 × RuntimeError: no memory at 0x7f01" in section(FIRST, LAST)
    text = section(FIRST, {**LAST, "error": "KeyError: 'x'"})
    assert "Attempts per cause: 1 × RuntimeError: no memory at 0x7f01, 1 × KeyError: 'x'" in text


def test_why_there_was_no_other_restart(section):
    assert "No other restart: no step further <b>" in section(FIRST, LAST)


def test_a_run_of_an_earlier_version_has_no_such_column(section):
    text = section(None, None)
    assert "without progress" not in text and "Attempts per cause" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "odd", [None, 7, [], {}, "<b>", {"steps": "<b>", "error": ["<b>"], "no_restart": 1, "counted": 1}]
)
def test_what_others_write_there_is_text(section, odd):
    section(FIRST, odd)
    section(odd, LAST)
