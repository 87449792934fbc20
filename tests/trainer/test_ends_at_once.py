"""tests/fixtures/ends_at_once: a process ends with its own status, and what was registered for its end does not run."""

import os
import subprocess
import sys

import pytest
import ranks

ENDING = "import atexit, os, sys; atexit.register(os._exit, 99); print('done'); "


@pytest.mark.slow
@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        ("pass", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('so')", 1, "so\n"),
        ("raise SystemExit(4)", 4, ""),
        ("raise ValueError", 1, "ValueError\n"),
    ],
)
def test_a_process_ends_with_its_own_status(end, status, said):
    folder = ranks.PROJECT / "tests" / "fixtures" / "ends_at_once"
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    ended = subprocess.run([sys.executable, "-c", ENDING + end], env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (status, "done\n")
    assert ended.stderr.endswith(said)
    del environment["PYTHONPATH"]
    assert subprocess.run([sys.executable, "-c", ENDING + end], env=environment, capture_output=True).returncode == 99
