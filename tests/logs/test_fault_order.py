"""Which known failure is told first: an error, what is special, what the root itself says, and the first in time."""

import pytest

from tools.diagnosis import job_logs
from tools.logs import known_failures

TRACE = 'Traceback (most recent call last):\n  File "t.py", line 3, in f\n'
RULES = """diagnoses:
- {code: wide, patterns: [something failed], vague: true, cause: c, remedy: r}
- {code: AISW_X_ERRCODE_Custom, patterns: [failed with code], cause: c, remedy: r}
- {code: first, patterns: [disk is broken], cause: c, remedy: r}
- {code: second, patterns: [file is torn], cause: c, remedy: r}
- {code: EI0006, patterns: [EI0006], cause: c, remedy: r}
- {code: slow-data, patterns: [it takes long], cause: c, remedy: r}
- {code: raised, patterns: ["KeyError: 4"], cause: c, remedy: r}
"""


@pytest.fixture
def entries(tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "rules.yaml"
    path.write_text(RULES)
    found, complaints = known_failures.load_file(str(path))
    assert not complaints
    return found


@pytest.fixture
def codes(tmp_path, entries):
    def told(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.log").write_text(text)
        return [fault.entry.code for fault in job_logs.of_paths([str(tmp_path)], entries).faults]

    return told


def line(level, text, second=0):
    return f"[{level}] MD(7,python):2025-01-24-11:00:{second:02}.000.000 [a.cc:1]{text}\n"


def test_an_error_comes_before_a_warning(codes):
    assert codes(rank_0=line("WARNING", "it takes long") + line("ERROR", "file is torn", 5)) == ["second", "slow-data"]


def test_the_error_is_quoted_where_a_warning_says_the_same(tmp_path, entries):
    (tmp_path / "rank_0.log").write_text(line("WARNING", "file is torn 1") + line("ERROR", "file is torn 2", 5))
    assert "torn 2" in job_logs.of_paths([str(tmp_path)], entries).faults[0].seen.text


def test_what_is_special_comes_before_what_is_general(codes):
    text = line("ERROR", "something failed") + line("ERROR", "failed with code 7") + line("ERROR", "file is torn", 5)
    assert codes(rank_0=text) == ["second", "AISW_X_ERRCODE_Custom", "wide"]


def test_the_first_error_comes_first_with_times_and_without(codes):
    assert codes(rank_0=line("ERROR", "file is torn") + line("ERROR", "disk is broken", 5)) == ["second", "first"]
    assert codes(rank_0="file is torn\ndisk is broken\n") == ["second", "first"]
    assert codes(rank_0=line("ERROR", "file is torn") + "disk is broken\n") == ["second", "first"]


def test_what_an_exception_says_comes_before_earlier_noise(codes):
    assert codes(rank_0=f"disk is broken\n{TRACE}KeyError: 4\n") == ["raised", "first"]


def test_a_wait_is_no_cause_where_another_rank_failed_by_itself(codes):
    wait = "EI0006: 2025-01-24-10:00:00 Getting socket times out.\n"
    assert codes(rank_0=wait, rank_1=f"{TRACE}KeyError: 4\n") == ["raised"]
    assert codes(rank_0=wait, rank_1=f"{TRACE}KeyError: 5\n") == []


def test_where_nothing_else_is_known_the_wait_is_the_cause(codes):
    assert codes(rank_0="EI0006: Getting socket times out.\n") == ["EI0006"]
    assert codes(rank_0=f"something failed\n{TRACE}RuntimeError: inner error\nEI0006: x\n") == ["EI0006", "wide"]


def test_the_root_comes_before_ranks_that_have_an_error_too(codes):
    late = line("ERROR", "file is torn", 50)
    assert codes(rank_0=late, rank_1=line("ERROR", "disk is broken", 1)) == ["first", "second"]
