"""The diagnosis says nothing of jobs that went well: real ones of MindSpore 2.10, and others in our own words."""

import os
from pathlib import Path

import pytest
from logs.known import ENTRIES
from suite.cases import for_each

from tools.diagnosis import job_logs

FOLDER = Path(__file__).parents[1] / "fixtures" / "healthy_logs"
JOBS = sorted(path.name for path in FOLDER.iterdir())
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*") if path.is_file())


def test_there_are_many_and_they_are_small():
    assert len(JOBS) >= 20
    assert sum(os.path.getsize(FOLDER / name) for name in FILES) < 150_000


@pytest.mark.slow
@for_each("name", [*JOBS, *FILES])
def test_a_healthy_job_has_neither_cause_nor_root(name):
    explained = job_logs.of_paths([str(FOLDER / name)], ENTRIES)
    assert explained.reading.findings
    assert [(fault.entry.code, fault) for fault in explained.faults] == []
    assert explained.verdict is None
    assert not any(one.error or one.exception for one in explained.reading.findings)
