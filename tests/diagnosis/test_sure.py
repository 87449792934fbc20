"""No wrong root is ever called sure: random jobs of which one rank really failed, and the others only waited for it."""

import random
import time
from pathlib import Path

import plogs
import pytest
from logs.known import ENTRIES
from suite.cases import for_each

from tools.diagnosis import faults, processes, root
from tools.logs import events, owners, scan, sources

# What ranks print that only waited: MindSpore's, torch's and CANN's wrappings of a wait, as a rank's log has them.
WAITED = (
    """[ERROR] ASCENDCL({pid},python):{at} [tensor_data_transfer.cpp:899]{pid} acltdtSendTensor: [Push][Data]failed to \
send, tdt result = -1, device is 1, name is a
Traceback (most recent call last):
  File "train.py", line 9, in main
RuntimeError: Preprocess failed before run graph 1. The details refer to 'Ascend Error Message'.

----------------------------------------------------
- Ascend Error Message:
----------------------------------------------------
EI0006: Getting socket times out. Reason: 1. The remote does not initiate a connect request.
""",
    """[ERROR] DEVICE({pid},ffff,python):{at} [a/ascend_stream_manager.cc:241] SyncStream] Call runtime \
aclrtSynchronizeStreamWithTimeout error.
EE9999: Inner Error!
EE9999 The error from device(chipId:1, dieId:0), event wait timeout occurred during task execution, stream_id:122
""",
    """[CRITICAL] DEVICE({pid},ffff,python):{at} [a/graph_executor.cc:240] RunGraph] Run task for graph:g error! \
The details refer to 'Ascend Error Message'.Ascend Error Message:EI0002: The wait execution of the Notify register \
times out. base information: [streamID:[14], taskType[Notify Wait], tag[HcomAllReduce_6_0.] remote rank:[{peer}].
""",
    """[ERROR] DEVICE({pid},ffff,python):{at} [a/kernel_runtime_manager.cc:138] WaitTaskFinishOnDevice] SyncStream \
failed, exception:The pointer[stream] is null.
EI0006: {at} Getting socket times out. Reason: Remote Rank did not send the data in time.
""",
    """Traceback (most recent call last):
  File "train.py", line 9, in main
RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64
[ERROR] 2025-01-24-11:40:00 (PID:{pid}, Device:0, RankID:{rank}) ERR02200 DIST call hccl api failed.
EI0002: 2025-01-24-11:40:00.1 The wait execution of the Notify register times out.
""",
    """[rank{rank}]: Traceback (most recent call last):
[rank{rank}]:   File "train.py", line 9, in main
[rank{rank}]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1, remote process exited or \
there was a network error
""",
    """Traceback (most recent call last):
  File "train.py", line 9, in main
RuntimeError: [../gloo/transport/tcp/pair.cc:589] Connection closed by peer [10.0.0.1]:3391
""",
    """Traceback (most recent call last):
  File "train.py", line 9, in main
RuntimeError: Communicator of hccl_world_group inited: failed. Result: Failed to fetch the unique id of the \
collective lib from the meta server node. Maybe the root rank process of this group has exited.
""",
    'Traceback (most recent call last):\n  File "a.py", line 3, in g\nKeyboardInterrupt\n',
)
# Of these nobody knows that they follow from a wait: a rank that has one may be named, but is not sure.
UNKNOWN = (
    "[ERROR] NEWLIB({pid},python):{at} [a.cc:1]the mesh is broken, part 3\n",
    'Traceback (most recent call last):\n  File "a.py", line 3, in g\nRuntimeError: the ring was torn\n',
    "Segmentation fault (core dumped)\n",
)
RAISED = (
    "Traceback (most recent call last):\n  File \"a.py\", line 3, in g\nKeyError: 'label'\n",
    'Traceback (most recent call last):\n  File "a.py", line 3, in g\nMemoryError\n',
    'Traceback (most recent call last):\n  File "a.py", line 3, in g\nValueError: no such split: valid2\n',
    "EJ0001: 2025-01-24-11:20:00.167.645 Failed to initialize the HCCP process.\n",
    "[ERROR] RUNTIME({pid},python):{at} [a.cc:1]Memory async copy failed\n",
    "[CRITICAL] MD({pid},ffff,python):{at} [a.cc:1] Open] Invalid file, the checksum is wrong.\n",
    "terminate called after throwing an instance of 'std::bad_alloc'\n",
    "",  # killed: it says nothing
)
HEALTHY = "epoch: 10 step: 500, loss is 2.31\n"


def verdict_of(folder):
    reading = sources.read([str(folder)], ENTRIES)
    return root.verdict_of(processes.job_of(reading.findings, reading.papers))


def told(verdict):
    return verdict and (verdict.kind, [one.rank for one in verdict.roots], verdict.certainty, verdict.sentence)


def printed(folder, chance):
    """A job of which each rank has a log of what it printed; returns the rank that failed, and whether all are here."""
    ranks, wrapper = chance.choice((2, 3, 4, 8, 16)), chance.choice(WAITED)
    failed = chance.randrange(ranks)
    folder.mkdir()
    missing = [rank for rank in range(ranks) if chance.random() < chance.choice((0, 0, 0.3))]
    for rank in range(ranks):
        wrapper = chance.choice((wrapper, chance.choice(WAITED)))
        waits = plogs.at(2000 + chance.random() * 60 + chance.choice((0, 0, -2500)))
        values = {"pid": 4000 + rank, "rank": rank, "peer": failed, "at": waits}
        text = (
            chance.choice(RAISED).replace("{at}", plogs.at(100)).replace("{pid}", str(4000 + rank))
            if rank == failed
            else wrapper.format(**values)
        )
        if rank not in missing:
            (folder / f"rank_{rank}.log").write_text(HEALTHY + text)
    if chance.random() < 0.5:  # MindSpore's scheduler says how many ranks there are
        line = (
            "[WARNING] DISTRIBUTED(9,7f,python):{at} [a.cc:254] ProcessRegister] The new node: {n}(role: MS_WORKER), "
            "rank id: {n}, device id: {n}, hostname: node1, ip: 127.0.0.1 is registered successfully. "
            "Currently registered node number: {came}, expected node number: {ranks}\n"
        )
        text = "".join(line.format(at=plogs.at(1), n=rank, came=rank + 1, ranks=ranks) for rank in range(ranks))
        lost = chance.choice((failed, None))
        if lost is not None:
            head = f"[ERROR] DISTRIBUTED(9,7f,python):{plogs.at(900)} [a.cc:548] UpdateTopoState] "
            text += head + f"The node: {lost} is timed out. It may exit with exception, please check this node's log.\n"
        (folder / "scheduler.log").write_text(text)
    return failed, not missing


def plogged(folder, chance):
    """A job of which each rank has plogs, on hosts whose clocks may differ."""
    ranks, each = chance.choice((2, 4, 8, 16)), chance.choice((1, 2, 8))
    failed = chance.randrange(ranks)
    missing = [rank for rank in range(ranks) if chance.random() < chance.choice((0, 0, 0.3))]
    skew = {host: chance.choice((0, 0, 40, -300, 28800)) for host in range(ranks)}
    it = plogs.Job(folder, ranks=ranks, each=each, silent=missing, skew=skew)
    if chance.random() < 0.3:  # nothing compares the clocks
        for path in folder.rglob("run/plog/*.log"):
            path.write_text(path.read_text().replace("HcclCommInitRootInfo success", "nothing"))
    if chance.random() < 0.7 and failed not in missing:
        it.write(failed, 100, "Aicore kernel execute failed, fault kernel_name=x", module="RUNTIME")
    for rank in range(ranks):
        if rank != failed and rank not in missing:
            wait = chance.choice((it.link, it.notify))
            wait(rank, failed, seconds=150 + chance.random() * 50)
            for text in ("model execute failed", "rtStreamSynchronize execute failed, reason=[x]", "destroy error"):
                if chance.random() < 0.5:
                    it.write(rank, 205, text, module="GE")
            if chance.random() < 0.3:
                it.write(rank, 149, "[Push][Data]failed to send, tdt result = -1", module="ASCENDCL")
    return failed, not missing


@pytest.mark.slow
@for_each("seed", range(300))
def test_a_wrong_root_is_never_sure(tmp_path, seed):
    chance = random.Random(seed)
    make = chance.choice((printed, plogged))
    failed, _ = make(tmp_path / "logs", chance)
    if not any(Path(tmp_path / "logs").rglob("*.log")):
        return
    verdict = verdict_of(tmp_path / "logs")
    assert verdict is None or verdict.certainty != "sure" or [one.rank for one in verdict.roots] == [failed], told(
        verdict
    )


@for_each("text", UNKNOWN)
@for_each("seed", range(5))
def test_an_error_of_which_nothing_is_known_is_not_sure_beside_a_silent_rank(tmp_path, text, seed):
    """One rank was killed without a word, and one that lost it prints what no table has."""
    chance = random.Random(seed)
    folder = tmp_path / "logs"
    plogs.Job(folder, ranks=4)
    killed, loser, *_ = chance.sample(range(4), 4)
    values = {"pid": 1000 + loser, "at": plogs.at(500)}
    (folder / "node0" / f"rank_{loser}" / "rank.log").write_text(text.format(**values))
    verdict = verdict_of(folder)
    assert verdict.certainty != "sure", told(verdict)


HANDLED = 'Traceback (most recent call last):\n  File "a.py", line 3, in g\nImportError: no apex\n'


def test_an_exception_after_which_a_rank_went_on_is_not_sure(tmp_path):
    """Rank 0 printed one that it handled, and then waited, or trained, while rank 1 was killed without a word."""
    for number, after in enumerate((HEALTHY * 300, HEALTHY + "EI0006: Getting socket times out.\n")):
        folder = tmp_path / str(number)
        plogs.Job(folder, ranks=3)
        (folder / "node0" / "rank_0" / "rank.log").write_text(HANDLED + after)
        verdict = verdict_of(folder)
        assert verdict.certainty != "sure", told(verdict)


def test_a_job_that_a_person_ended_has_no_root(tmp_path):
    for rank in range(3):
        text = 'Traceback (most recent call last):\n  File "a.py", line 3, in g\nKeyboardInterrupt\n'
        (tmp_path / f"rank_{rank}.log").write_text(HEALTHY + text)
    assert verdict_of(tmp_path) is None


@pytest.mark.slow
@pytest.mark.parametrize("make", [printed, plogged])
def test_with_all_logs_the_root_is_found(tmp_path, make):
    wrong, number = [], 0
    for seed in range(150):
        chance = random.Random(f"all {seed}")
        failed, complete = make(tmp_path / str(seed), chance)
        if complete:
            number += 1
            verdict = verdict_of(tmp_path / str(seed))
            if not verdict or [one.rank for one in verdict.roots] != [failed]:
                wrong.append((seed, failed, told(verdict)))
    assert number > 50 and wrong == []


@pytest.mark.thorough
def test_sixty_five_thousand_ranks_cost_no_minute():
    """Each has one line of its own, and its number from HCCL: whoever compares each with each needs hours."""
    ranks = 1 << 16
    findings = []
    for rank in range(ranks):
        owner = owners.Owner(f"node{rank // 8}", f"node{rank // 8}", None, 1000 + rank % 8)
        values = {"ranks": str(ranks), "rank": str(rank), "device": str(rank % 8), "group": "g"}
        found = [events.Event("member", 10.0, 1, values, ""), events.Event("waited", 2000.0, 2, {}, "EI0006: x")]
        error = None if rank % 3 else scan.Seen(100.0 + rank, 2, f"[ERROR] RUNTIME: failed of {rank}")
        one = scan.Findings(
            path=f"{rank}/debug/plog/plog-1_1.log", kind=owners.PLOG, owner=owner, first=10.0, last=2000.0
        )
        findings.append(one.replace(events=tuple(found[: 1 if error else 2]), error=error, errors=1))
    began = time.process_time()
    job = processes.job_of(findings, {})
    verdict = root.verdict_of(job)
    faults.faults_of(ENTRIES, findings, job, verdict)
    assert (len(job.processes), job.complete, verdict.certainty) == (ranks, True, "likely")
    assert [one.rank for one in verdict.roots][:2] == [0, 3]
    assert time.process_time() - began < 30


def of_ranks(folder, *ends, minute=51):
    """The logs of ranks that MindSpore's scheduler has numbered, each with its end."""
    folder.mkdir(exist_ok=True)
    for rank, end in enumerate(ends):
        head = f"[WARNING] DISTRIBUTED({7000 + rank},7f01,python):2026-11-25-09:{minute}:12.000.000 [a.cc:1]"
        (folder / f"worker_{rank}.log").write_text(f"{head} PostProcess] This node {rank} rank id: {rank}\n{end}")


def raises(text):
    return f'Traceback (most recent call last):\n  File "t.py", line 3, in f\n{text}\n'


def handling(*texts):
    return "\nDuring handling of the above exception, another exception occurred:\n\n".join(map(raises, texts))


REGISTERED = (
    "[WARNING] DISTRIBUTED(9,7f00,python):2026-11-25-09:51:10.000.000 [a.cc:1] ProcessRegister] The new node: 2(role: "
    "MS_WORKER), rank id: 2 is registered successfully. Currently registered node number: 3, expected node number: 3\n"
)
CLOSED = "RuntimeError: Connection closed by peer"


@pytest.mark.parametrize("text", ["EOFError", "concurrent.futures.process.BrokenProcessPool: x", "AssertionError: y"])
def test_what_may_follow_from_a_rank_that_was_killed_is_not_sure(text, tmp_path):
    of_ranks(tmp_path / "a", "", raises(text), raises(CLOSED))
    (tmp_path / "a" / "scheduler.log").write_text(REGISTERED)
    verdict = verdict_of(tmp_path / "a")
    assert verdict.certainty != "sure"


@pytest.mark.parametrize("first", ["KeyboardInterrupt", CLOSED, "ConnectionResetError: [Errno 104] x"])
def test_what_is_raised_after_a_wait_or_by_a_person_follows(first, tmp_path):
    of_ranks(tmp_path / "a", raises(first), handling(first, "KeyError: 'state'"), raises(first))
    (tmp_path / "a" / "scheduler.log").write_text(REGISTERED)
    verdict = verdict_of(tmp_path / "a")
    assert verdict is None or not verdict.roots


def test_what_was_raised_before_a_wait_is_the_reason(tmp_path):
    of_ranks(tmp_path / "a", raises(CLOSED), handling("KeyError: 'image'", CLOSED), raises(CLOSED))
    verdict = verdict_of(tmp_path / "a")
    assert ([one.rank for one in verdict.roots], verdict.text) == ([1], "KeyError: 'image'")


def test_two_jobs_of_the_same_ranks_are_not_mixed(tmp_path):
    of_ranks(tmp_path / "b", raises(CLOSED), raises("KeyError: 1"))
    of_ranks(tmp_path / "a", raises("KeyError: 2"), raises(CLOSED), minute=58)
    verdict = verdict_of(tmp_path)
    assert ([one.rank for one in verdict.roots], verdict.text) == ([0], "KeyError: 2")
