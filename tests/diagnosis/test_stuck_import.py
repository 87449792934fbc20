"""Where the process that imports for all ranks was when the job hung; whole launches: import_once_faults.bats."""

import os
import subprocess
import sys

import pytest

from hccl_tools.common import project
from tools.diagnosis import hang, stacks

HUNG = "the job hung: the process that imports for all ranks was "
HOOK = project.path("tools", "forking", "hook", "sitecustomize.py")
STACK = f"""\
Fatal Python error: Aborted

Current thread 0x00007f59 (most recent call first):
  File "/venv/lib/python3.11/site-packages/heavy.py", line 3 in load
  File "<frozen importlib._bootstrap>", line 241 in _call_with_frames_removed
  File "{HOOK}", line 126 in imported
  File "/home/me/other.py", line 1 in <module>
"""
SPIED = """\
Process 17: python -u program.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 17 (idle): "MainThread"
    load (/venv/lib/python3.11/site-packages/heavy.py:3)
    _find_and_load (<frozen importlib._bootstrap>:1176)
    imported (tools/forking/hook/sitecustomize.py:127)
    <module> (/home/me/other.py:1)
"""


def told(folder, pid, module):
    """The line about this process."""
    read, write = os.pipe()
    hang.tell_import(write, str(folder), pid, module)
    with os.fdopen(read) as file:
        return file.read()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"Import: heavy\n{STACK}", "importing heavy, in load (/venv/lib/python3.11/site-packages/heavy.py:3)"),
        (f"Import: heavy\n{SPIED}", "importing heavy, in load (/venv/lib/python3.11/site-packages/heavy.py:3)"),
        (f"Import: \n{STACK}", "in load (/venv/lib/python3.11/site-packages/heavy.py:3)"),
        (f"Import: a\x1b[2J\n{STACK}", r"importing a\x1b[2J, in load"),
        ("Import: heavy\n", "importing heavy, its stack is unknown; install py-spy"),
        ("Import: heavy\nState: in the kernel\n", "importing heavy, waiting in the kernel, as for a file"),
    ],
)
def test_the_module_and_the_place_are_named_and_nothing_of_ours(tmp_path, text, said):
    (tmp_path / "imports.stack").write_text(text)
    launch = {"outcome": {"stopped_by": "hang"}, "ranks": []}
    found = hang.of_run(launch, str(tmp_path))
    assert found.startswith(HUNG + said)
    assert "sitecustomize" not in found and "other.py" not in found


@pytest.mark.parametrize("text", ["", "Fatal Python error: Aborted\n"])
def test_another_file_of_this_name_says_nothing(tmp_path, text):
    (tmp_path / "imports.stack").write_text(text)
    assert hang.of_import(str(tmp_path)) == ""


def test_a_process_that_the_kernel_holds_and_that_takes_no_signal_is_said_to_be_so(tmp_path, monkeypatch):
    monkeypatch.setattr(stacks, "SECONDS", 0.05)
    (tmp_path / "imports.log").write_text("")
    os.mkfifo(tmp_path / "fifo")
    # The process that vfork(2) stops waits as one does for a disk; its child waits for somebody who writes.
    opens = "[(os.POSIX_SPAWN_OPEN, 0, 'fifo', 0, 0)]"
    code = f"import os; print(flush=True); os.posix_spawn('/bin/true', ['true'], {{}}, file_actions={opens})"
    variables = {**os.environ, "PYTHONFAULTHANDLER": "1", "PATH": ""}
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=variables, stdout=-1, stderr=-3) as held:
        assert held.stdout is not None and held.stdout.readline()
        while stacks.proc.state(held.pid) != "D":
            assert held.poll() is None
        try:
            said = told(tmp_path, held.pid, "heavy")
        finally:
            os.close(os.open(tmp_path / "fifo", os.O_RDWR | os.O_NONBLOCK))
            held.kill()
    waits = "waiting in the kernel, as for a file on NFS that does not answer"
    command = r"python -v -c import\ heavy"
    assert said == f"{HUNG}importing heavy, {waits}; the last line that this command prints names the file: {command}\n"
