"""Which signals a rank takes for a request to end, and after which step the ranks end together; without MindSpore."""

import os
import signal
import subprocess
import sys
import types

import pytest
from suite.needs import Later, needs_packages

from hccl_tools.common import project
from tools.trainer import request_file

resume = Later("tools.trainer.resume")

# A rank whose main thread does not look at its signals, as one that waits inside MindSpore for the others.
RANK = """
import ctypes, os, sys, time
sys.path.insert(0, sys.argv[1])
from tools.trainer import end_requests
end_requests.PATIENCE = float(sys.argv[2])
requests = end_requests.of_this_rank()
requests.heed()
print("ready", flush=True)
end = time.monotonic() + 300
while not requests.asked and time.monotonic() < end:
    time.sleep(0.01)
os._exit(7 if requests.asked else 1)
"""


@pytest.fixture
def rank(tmp_path):
    """rank(launched, patience): a rank that waits for a request and then ends with 7."""
    started = []

    def start(launched, patience=300, script=RANK):
        variables = {"LAUNCH_JOB": "run@host", "LOG_DIR": str(tmp_path)} if launched else {}
        words = [sys.executable, "-c", script, str(project.ROOT), str(patience)]
        one = subprocess.Popen(words, env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True)
        started.append(one)
        assert one.stdout.readline() == "ready\n"
        return one

    yield start
    for one in started:
        one.kill()
        one.communicate()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("launched", "number", "value", "code"),
    [
        (False, signal.SIGTERM, None, 7),
        (False, signal.SIGUSR1, None, 7),
        (True, signal.SIGTERM, 1, 7),
        (True, signal.SIGUSR1, None, 7),  # of Slurm itself: no failure has this signal
        (True, signal.SIGTERM, 0, 143),
    ],
)
def test_sigterm_of_a_launcher_is_a_request_where_its_file_says_so(rank, tmp_path, launched, number, value, code):
    if value is not None:
        assert request_file.tell(str(tmp_path), bool(value)) == ""
    one = rank(launched)
    one.send_signal(number)
    assert one.wait() == code


def test_without_a_file_the_rank_waits_for_it_and_then_ends_as_without_a_handler(rank, tmp_path):
    one = rank(True, patience=0.1)  # MindSpore has sent it, which has lost the job
    one.send_signal(signal.SIGTERM)
    assert one.wait() == 143
    one = rank(True)
    one.send_signal(signal.SIGTERM)  # Slurm signals a rank before its agent, which then writes the file
    request_file.tell(str(tmp_path), True)
    assert one.wait() == 7


def test_a_signal_that_its_user_ignores_stays_ignored(rank):
    ignores = "import signal\nsignal.signal(signal.SIGUSR1, signal.SIG_IGN)\n"
    one = rank(False, script=ignores + RANK)
    one.send_signal(signal.SIGUSR1)
    one.send_signal(signal.SIGTERM)
    assert one.wait() == 7


def test_a_worker_of_the_data_loader_ends_by_sigterm_and_asks_for_nothing(rank):
    forks = """
reads, writes = os.pipe()
worker = os.fork()
if not worker:
    import signal
    signal.alarm(20)  # else the test would wait for ever where SIGTERM does not end it
    os.write(writes, b"up")
    time.sleep(600)
os.read(reads, 2)
os.kill(worker, 15)
assert os.waitpid(worker, 0)[1] == 15
time.sleep(0.05)
assert not requests.asked
"""
    one = rank(False, script=RANK.replace('print("ready"', forks + 'print("ready"'))
    one.send_signal(signal.SIGTERM)
    assert one.wait() == 7


def test_a_rank_that_waits_outside_of_python_ends_after_a_failure(rank, tmp_path):
    waits = 'print("ready", flush=True)\nlibc = ctypes.CDLL(None)\nwhile True:\n    libc.pause()\n'
    request_file.tell(str(tmp_path), False)
    one = rank(True, script=RANK.replace('print("ready", flush=True)', waits))
    one.send_signal(signal.SIGTERM)
    assert one.wait() == 143


# ---- the step --------------------------------------------------------------------------------------------------------


class Ranks:
    """Ranks that train in step; `gather` gives each the numbers of all, and fails where they ask at different steps."""

    def __init__(self, number, seconds):
        self.now, self.seconds = 0.0, seconds
        self.asked = [types.SimpleNamespace(asked=False, heed=lambda: None) for _ in range(number)]
        self.saves = [types.SimpleNamespace(saved=0, steps=[]) for _ in range(number)]
        self.stopped = []
        make = resume.SaveOnRequest
        self.callbacks = [
            make(self.asked[rank], self.saves[rank], (lambda row: row) if number > 1 else None, lambda: self.now)
            for rank in range(number)
        ]
        self.exchanges = []  # the steps after which they asked each other

    def step(self, number, batch_num=10):
        """All ranks do this step; the numbers that they would exchange are known before each asks."""
        self.now += self.seconds
        due = [callback._next <= number for callback in self.callbacks]
        assert len(set(due)) == 1, "some ranks ask, and others do not: they would wait for ever"
        if due[0]:
            self.exchanges.append(number)
        flags = [int(callback.requests.asked) for callback in self.callbacks]
        for rank, callback in enumerate(self.callbacks):
            if callback.gather is not None:
                callback.gather = lambda row: [[flag, row[1]] for flag in flags]
            self._end_step(rank, callback, number, batch_num)

    def _end_step(self, rank, callback, number, batch_num):
        state = types.SimpleNamespace(cur_step_num=number, cur_epoch_num=(number - 1) // batch_num + 1)
        state.batch_num = batch_num
        saves = self.saves[rank]
        saves.save = lambda _: saves.steps.append(number)
        context = types.SimpleNamespace(original_args=lambda: state, request_stop=lambda: self.stopped.append(rank))
        callback.on_train_step_end(context)


needs_mindspore = needs_packages("mindspore")


@needs_mindspore
@pytest.mark.thorough
@pytest.mark.parametrize("seconds", [0.001, 0.3, 5.0])
def test_ranks_that_hear_it_at_different_moments_save_after_the_same_step(seconds, capsys):
    ranks = Ranks(3, seconds)
    for number in range(1, 4000):
        if number == 100:
            ranks.asked[1].asked = True
        ranks.step(number)
        if ranks.stopped:
            break
    assert sorted(ranks.stopped) == [0, 1, 2]
    assert [saves.steps for saves in ranks.saves] == [[number]] * 3
    assert 100 <= number <= 100 + 2 * max(1, 1 / seconds)
    lines = set(capsys.readouterr().out.splitlines())
    place = f"epoch: {(number - 1) // 10 + 1} step: {(number - 1) % 10 + 1}"
    assert lines == {f"{place}, asked to end: the checkpoint is saved"}
    exchanges = len(ranks.exchanges)
    assert exchanges <= 12 + ranks.now * 1.1  # about once a second, once they know how long a step takes


@needs_mindspore
@pytest.mark.thorough
def test_what_was_saved_after_this_step_is_not_saved_again(capsys):
    ranks = Ranks(1, 1.0)
    ranks.asked[0].asked = True
    ranks.saves[0].saved = 7
    ranks.step(7)
    assert (ranks.saves[0].steps, ranks.stopped, ranks.callbacks[0].ended) == ([], [0], True)
    assert capsys.readouterr().out == "epoch: 1 step: 7, asked to end: the checkpoint is saved\n"
