"""Seven real jobs of MindSpore's msrun on the CPU, and what the diagnosis says of each."""

import json
import os
import pathlib
import select
import signal
import socket
import subprocess
import sys

import pytest
from logs.known import ENTRIES
from suite.needs import needs_packages

from tools.diagnosis import answer, job_logs, words

pytestmark = [needs_packages("mindspore"), pytest.mark.thorough, pytest.mark.trains]
MSRUN = pathlib.Path(__file__).parents[1] / "fixtures" / "forking_msrun.py"
TRAINER = """
import os, signal, time
import mindspore as ms
from mindspore.communication import get_rank, init
ms.set_device("CPU")
init()
job, rank = os.environ["JOB"], get_rank()
print("rank", rank, flush=True)
if job == f"raises {rank}":
    raise ValueError("no such split: valid2")
if job == "killed" and rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if job != "healthy":
    time.sleep(60)
"""
_MOST = 300  # seconds for a job
# What a rank that fails must not be mistaken for: lines that healthy jobs have, too.
HEALTHY = {"too-many-processes", "too-many-open-files"}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture(scope="module")
def msrun():
    """The process that does the jobs."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MS_", "RANK", "DEVICE"))}
    # a node counts as lost after 5 s in place of 30; warnings, as MindSpore prints by itself, are in the logs
    environ = {**kept, "MS_NODE_TIMEOUT": "5", "GLOG_v": "2"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, MSRUN], env=environ, start_new_session=True, **pipes) as process:
        yield process
        process.stdin.close()
        os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def ran(msrun, tmp_path):
    """ran(job, options of msrun): does the job; returns its folder of logs and the exit code of msrun."""

    def run(job, *options, port=None, workers=2):
        (tmp_path / "train.py").write_text(TRAINER, encoding="utf-8")
        (tmp_path / "logs").mkdir()
        words = ["--worker_num", str(workers), "--local_worker_num", "2", "--master_port", str(port or free_port())]
        words += ["--log_dir", "logs", "--join", "True", *options, "train.py"]
        wanted = {"folder": str(tmp_path), "words": words, "variables": {"JOB": job}}
        msrun.stdin.write(json.dumps(wanted) + "\n")
        msrun.stdin.flush()
        assert select.select([msrun.stdout], [], [], _MOST)[0], "the job hangs"
        return tmp_path / "logs", int(msrun.stdout.readline())

    return run


def said(folder):
    """(ranks that are the root, how sure that is, codes of causes, all of the text)."""
    found = job_logs.of_paths([str(folder)], ENTRIES)
    verdict = found.verdict
    ranks = [one.rank for one in verdict.roots] if verdict else []
    codes = [fault.entry.code for fault in found.faults]
    lines = words.lines_of(answer.of_logs(found))
    return ranks, verdict.certainty if verdict else None, codes, "\n".join(lines)


def test_a_healthy_job(ran):
    folder, status = ran("healthy")
    assert status == 0
    assert said(folder)[:3] == ([], None, [])


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_raises(rank, ran):
    folder, status = ran(f"raises {rank}")
    assert status != 0
    ranks, certainty, codes, text = said(folder)
    assert (ranks, certainty) == ([rank], "sure"), text
    assert "ValueError: no such split: valid2" in text
    assert not HEALTHY & set(codes)


def test_a_rank_that_is_killed(ran):
    folder, status = ran("killed")
    assert status != 0
    ranks, certainty, codes, text = said(folder)
    assert (ranks, certainty) == ([1], "sure"), text
    assert "signal 9" in text and not HEALTHY & set(codes)
    # msrun's own output alone names the rank, too: it has the lines of all
    ranks, certainty, _, text = said(folder / "msrun.log")
    assert ranks == [1] and certainty in ("sure", "likely"), text


def test_a_rank_that_never_comes(ran):
    folder, status = ran("missing", "--node_rank", "0", "--cluster_time_out", "20", workers=3)
    assert status != 0
    ranks, _, codes, text = said(folder)
    assert ranks == [2], text
    assert not HEALTHY & set(codes)


def test_a_port_that_is_taken(ran):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        folder, status = ran("taken", "--cluster_time_out", "8", port=other.getsockname()[1])
    assert status != 0
    _, certainty, codes, text = said(folder)
    assert codes[0] == "port-in-use", text
    assert certainty != "sure"


def test_a_name_that_does_not_resolve(ran):
    folder, status = ran("no name", "--master_addr", "no-such-host.invalid")
    assert status != 0
    ranks, _, codes, text = said(folder)
    assert ranks == [] and codes[0] == "master-address", text
