"""What a scheduler and a program that starts ranks say of them: evidence about ranks, and never a root themselves."""

import pytest
from logs.known import ENTRIES

from tools.diagnosis import faults, processes, root
from tools.logs import matcher, scan, sources

KEY = 'Traceback (most recent call last):\n  File "t.py", line 3, in f\nKeyError: 4\n'


def scheduler(came, ranks, lost=None, numbers=True):
    """What MindSpore's scheduler prints."""
    head = "DISTRIBUTED(9,7f00,python):2026-11-25-09:51:1{0}.000.000 [a.cc:1]"
    lines = []
    for number, rank in enumerate(came):
        node = rank if numbers else f"4f0c-{rank}"
        lines.append(
            f"[WARNING] {head.format(0)} ProcessRegister] The new node: {node}(role: MS_WORKER), rank id: {rank}, "
            f"device id: {rank}, hostname: node1, ip: 127.0.0.1 is registered successfully. "
            f"Currently registered node number: {number + 1}, expected node number: {ranks}\n"
        )
    if lost is not None:
        node = lost if numbers else f"4f0c-{lost}"
        lines.append(f"[ERROR] {head.format(5)} UpdateTopoState] The node: {node} is timed out. It may exit with x\n")
        lines.append(f"[ERROR] {head.format(6)} Finalize] There are 1 abnormal compute graph nodes.\n")
        lines.append('Traceback (most recent call last):\n  File "t.py", line 5, in g\n')
        lines.append("RuntimeError: The total number of timed out node is 1. Timed out node list is: ")
        lines.append(f"[const vector]{{{node}}}, worker {node} is the first one timed out, please check its log.\n")
    elif len(lines) < ranks:
        lines.append(f"[ERROR] {head.format(7)} Initialize] Building networking for MS_SCHED failed.\n")
    return "".join(lines)


def worker(rank, more=""):
    head = f"[WARNING] DISTRIBUTED({7000 + rank},7f01,python):2026-11-25-09:51:12.000.000 [a.cc:1]"
    return f"{head} PostProcess] This node {rank} rank id: {rank}\nrank {rank}\n{more}"


@pytest.fixture
def told(tmp_path):
    def tell(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.log").write_text(text)
        reading = sources.read([str(tmp_path)], ENTRIES)
        job = processes.job_of(reading.findings, reading.papers)
        verdict = root.verdict_of(job)
        faults.faults_of(ENTRIES, reading.findings, job, verdict)
        return verdict and (verdict.kind, [one.rank for one in verdict.roots], verdict.certainty)

    return tell


NOT_BUILT = (
    "[ERROR] DISTRIBUTED(7000,7f01,python):2026-11-25-09:53:04.000.000 [a.cc:1] Initialize] Building networking for "
    'MS_WORKER failed.\nTraceback (most recent call last):\n  File "t.py", line 5, in g\nRuntimeError: Failed to '
    "initialize distributed job cluster because some processes in the cluster are not successfully spawned.\n"
)


def test_a_rank_that_raised_and_a_scheduler_that_lost_it(told):
    found = told(scheduler=scheduler((0, 1), 2, lost=1), worker_0=worker(0), worker_1=worker(1, KEY))
    assert found == ("error", [1], "sure")


@pytest.mark.parametrize("numbers", [True, False])
def test_a_rank_that_ended_without_a_word(told, numbers):
    found = told(scheduler=scheduler((0, 1), 2, 1, numbers), worker_0=worker(0), worker_1=worker(1))
    assert found == ("killed", [1], "sure")


def test_a_rank_whose_log_is_not_here(told):
    assert told(scheduler=scheduler((0, 1), 2, lost=1), worker_0=worker(0)) == ("killed", [1], "likely")


def test_a_rank_that_never_came_and_one_that_was_lost_meanwhile(told):
    """The one that is lost gave up waiting, and did not say so to the scheduler."""
    assert told(scheduler=scheduler((0, 1), 3, lost=0), worker_0=worker(0), worker_1=worker(1)) == (
        "missing",
        [2],
        "sure",
    )


def test_a_rank_that_came_too_late_is_not_one_that_never_came(told):
    found = told(scheduler=scheduler((0,), 3), worker_0=worker(0, NOT_BUILT), worker_1=NOT_BUILT)
    assert found == ("missing", [2], "sure")


def test_a_scheduler_that_cannot_begin(told):
    head = "DISTRIBUTED(9,7f00,python):2026-11-25-09:51:10.000.000 [a.cc:1]"
    text = (
        f"[WARNING] {head} Initialize] Begin to Initialize MetaServerNode.\n"
        f"[ERROR] {head} Initialize] Failed to create the TCP server.\n"
        f"[ERROR] {head} Initialize] Building networking for MS_SCHED failed.\n"
    )
    assert told(scheduler=text, worker_0=NOT_BUILT, worker_1=NOT_BUILT) == ("error", [], "likely")
    assert told(scheduler=text) == ("error", [], "likely")


def test_a_rank_that_only_waited_is_not_the_first_to_end(told):
    waited = "EI0006: Getting socket times out.\n"
    found = told(scheduler=scheduler((0, 1, 2), 3, 1), worker_0=worker(0, waited), worker_1=worker(1, waited))
    assert found[1] != [1]


@pytest.mark.parametrize(("logs", "certainty"), [((0, 2), "sure"), ((0, 1, 2), "likely")])
def test_a_rank_that_never_came(told, logs, certainty):
    texts = {f"worker_{rank}": NOT_BUILT.replace("7000", str(7000 + rank)) for rank in logs}
    assert told(scheduler=scheduler((0, 2), 3), **texts) == ("missing", [1], certainty)


def test_a_rank_that_never_came_as_it_raised(told):
    texts = {"worker_0": NOT_BUILT, "worker_1": KEY}
    assert told(scheduler=scheduler((0,), 2), **texts) == ("error", [1], "sure")


ENDS = {
    "msrun": "[ERROR] ME(1:2,MainProcess):2026-11-25-09:53:45.101.000 [a.py:365] Worker process 7001 exit with "
    "exception. Error code: -9.\n",
    "torchrun": "E1125 09:53:45.0 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
    "local_rank: 1 (pid: 7001) of binary: /usr/bin/python\n",
    "mpirun": "mpirun noticed that process rank 1 with PID 7001 on node node1 exited on signal 9 (Killed).\n",
    "srun": "srun: error: node1: task 1: Killed\n",
}


@pytest.mark.parametrize("engine", ENDS)
def test_a_rank_that_was_killed_is_told_by_what_started_it(told, engine):
    texts = {engine: ENDS[engine], "worker_0": worker(0), "worker_1": worker(1)}
    assert told(**texts) == ("killed", [1], "likely")


def test_it_is_sure_where_all_ranks_are_known(told):
    texts = {"msrun": ENDS["msrun"], "scheduler": scheduler((0, 1), 2, 1), "worker_0": worker(0), "worker_1": worker(1)}
    assert told(**texts) == ("killed", [1], "sure")


def test_a_process_of_no_known_rank(told):
    assert told(msrun=ENDS["msrun"]) == ("killed", [], "likely")


def test_torchruns_list_tells_the_rank_of_a_place_on_a_host(told):
    listed = "  rank      : 9 (local_rank: 1)\n  exitcode  : -9 (pid: 7001)\n"
    assert told(torchrun=ENDS["torchrun"] + listed) == ("killed", [9], "likely")


def test_the_end_of_a_rank_that_raised_is_no_news(told):
    ended = ENDS["msrun"].replace("-9", "1")
    assert told(msrun=ended, worker_0=worker(0), worker_1=worker(1, KEY)) == ("error", [1], "likely")


def test_a_scheduler_alone_is_no_root(told):
    failed = (
        "[ERROR] DISTRIBUTED(9,7f00,python):2026-11-25-09:51:10.000.000 [a.cc:1] Initialize] Port is in use\n" + KEY
    )
    assert told(scheduler=failed) is None


def test_a_helper_that_says_its_rank_is_gone(told):
    gone = "[ERROR] TBE Subprocess[task_distribute] raise error[], main process disappeared!\n"
    found = told(rank_0="EI0006: Getting socket times out.\n", rank_1=gone)
    assert found == ("killed", [1], "likely")


@pytest.mark.slow
@pytest.mark.parametrize("fast", [True, False])
def test_thousands_of_ranks_that_came(told, fast, monkeypatch):
    if not fast:
        monkeypatch.setattr(matcher, "installed", lambda: False)
        scan.use([])
    assert told(scheduler=scheduler(range(3000), 3000, lost=2500)) == ("killed", [2500], "likely")
    assert told(scheduler=scheduler(range(2999), 3000)) == ("missing", [2999], "sure")
