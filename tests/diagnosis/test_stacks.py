"""What the stacks of a rank say about where it is; whole launches that hang are in tests/launch/limits.bats."""

import signal
import subprocess
import sys

import pytest

from tools.diagnosis import stacks

ABORTED = """\
Fatal Python error: Aborted

Thread 0x00007f11 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 320 in wait
  File "/usr/lib/python3.11/queue.py", line 171 in get

Current thread 0x00007f59 (most recent call first):
  File "/venv/lib/python3.11/site-packages/mindspore/communication.py", line 88 in all_reduce
  File "/home/me/my train.py", line 12 in step
  File "/home/me/my train.py", line 30 in <module>

Extension modules: numpy
"""

SPIED = """\
Process 17: python -u train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 18 (idle): "loader"
    get (queue.py:171)
Thread 17 (active): "MainThread"
    step (/home/me/train.py:12)
    <module> (/home/me/train.py:30)
"""


def test_the_main_thread_counts_and_its_innermost_frame_comes_first():
    assert stacks.main_thread(SPIED)[0] == ("step", "/home/me/train.py", "12")
    assert stacks.main_thread(ABORTED)[1] == ("step", "/home/me/my train.py", "12")


def test_a_rank_inside_a_library_is_told_with_the_users_line_that_called_it():
    library = "/venv/lib/python3.11/site-packages/mindspore/communication.py"
    assert stacks.place(ABORTED) == f"in all_reduce ({library}:88), called from step (/home/me/my train.py:12)"
    assert stacks.place(SPIED) == "in step (/home/me/train.py:12)"


@pytest.mark.parametrize("text", ["", "no stack\n", "Fatal Python error: Aborted\n"])
def test_no_stack_is_said_with_what_would_help(text):
    assert "install py-spy" in stacks.place(text)


def test_a_rank_that_is_gone_at_once_has_said_where_it_was(tmp_path, monkeypatch):
    log = tmp_path / "rank_0.log"
    log.write_text("step 1\n")

    def kill(_, number):  # the parent collects it before we go on
        if number == signal.SIGCONT:
            raise ProcessLookupError
        log.write_text("step 1\n" + ABORTED)

    monkeypatch.setenv("PYTHONFAULTHANDLER", "1")
    program = "print('here', flush=True); input()"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"here\n"  # until then its environment may not be there
    try:
        monkeypatch.setattr(stacks.os, "kill", kill)
        monkeypatch.setattr(stacks, "_runs", lambda _: False)
        assert stacks.by_abort(child.pid, str(log)) == ABORTED
    finally:
        child.communicate(b"\n")


def test_a_process_that_has_ended_has_no_stack(tmp_path):
    assert stacks.by_abort(2**22 - 1, str(tmp_path / "rank_0.log")) == ""
