"""What the diagnosis says about real failures, of which field_cases.yaml has the right answers.

The logs are not ours, so they are not here: FIELD_FAULTS names the folder that holds them, a folder per case.
"""

import os
from pathlib import Path

import pytest
import yaml

from tools.diagnosis import job_logs, words
from tools.logs import known_failures

FIELD = os.environ.get("FIELD_FAULTS")
ENTRIES, _ = known_failures.load({})
CASES = yaml.safe_load((Path(__file__).parent / "field_cases.yaml").read_text(encoding="utf-8"))

pytestmark = pytest.mark.skipif(not FIELD, reason="FIELD_FAULTS does not name a folder of real failures")


def logs_of(name):
    folder = Path(FIELD, name)
    return folder / "input" if (folder / "input").is_dir() else folder


@pytest.mark.parametrize("name", CASES)
def test_a_real_failure(name):
    expected = CASES[name]
    found = job_logs.of_paths([str(logs_of(name))], ENTRIES)
    said = words.explain_logs(found)
    text = "\n".join(said)
    verdict = found.verdict
    ranks = [one.rank for one in verdict.roots] if verdict else []
    cause = found.faults[0].entry.code if found.faults else None
    assert ranks in expected["roots"], text
    assert (verdict.certainty if verdict else None) in expected["certainty"], text
    assert cause in expected["codes"], text
    assert [word for word in expected.get("says", []) if word not in text] == [], text
    assert [word for word in expected.get("never", []) if word in text] == [], text


def test_every_case_has_a_right_answer():
    assert sorted(CASES) == sorted(path for path in _below(Path(FIELD)) if path not in ("kinds",))


def _below(folder):
    return [
        path.relative_to(folder).as_posix()
        for top in (folder, folder / "kinds")
        for path in top.iterdir()
        if path.is_dir()
    ]
