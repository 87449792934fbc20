"""Ranks that are behind, or in another collective, in the words of PyTorch, Horovod and HCCL."""

import pytest
from logs.known import ENTRIES

from tools.diagnosis import job_logs


@pytest.fixture
def told(tmp_path):
    def tell(text, name="train.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        verdict = job_logs.of_paths([str(tmp_path)], ENTRIES).verdict
        tell.verdict = verdict
        return verdict and (verdict.kind, [one.rank for one in verdict.roots], verdict.certainty)

    return tell


def print_of(shape, number=4, kind="ALLREDUCE"):
    return f"CollectiveFingerPrint(SequenceNumber={number}, OpType={kind}, TensorShape=[{shape}], TensorDtypes=Float)"


def differs(own, mine, rank, other):
    return (
        f"[rank{own}]: RuntimeError: Detected mismatch between collectives on ranks. Rank {own} is running collective: "
        f"{mine}, but Rank {rank} is running collective: {other}. Collectives differ in the following aspects: x\n"
    )


def test_two_ranks_in_different_collectives_are_both_named(told):
    assert told(differs(1, print_of(8), 2, print_of(9))) == ("conflict", [1, 2], "likely")
    assert "TensorShape=[9]" in told.verdict.chain[1]


def test_of_many_ranks_the_one_with_another_collective_is_the_root(told):
    text = differs(0, print_of(8), 3, print_of(9)) + differs(1, print_of(8), 3, print_of(9))
    text += differs(3, print_of(9), 0, print_of(8))
    assert told(text) == ("conflict", [3], "likely")


def timed_out(rank, seq, size=8, kind="ALLREDUCE", group=""):
    who = f"[PG {group} Rank {rank}]" if group else f"[Rank {rank}]"
    return (
        f"[rank{rank}]:[E1 ProcessGroupNCCL.cpp:6] {who} Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={seq}, OpType={kind}, NumelIn={size}, NumelOut={size}, Timeout(ms)=600000) ran for "
        "600001 milliseconds before timing out.\n"
    )


def queued(rank, last, done):
    return (
        f"[rank{rank}]:[E1 ProcessGroupNCCL.cpp:7] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Received a dump signal "
        f"due to a collective timeout from this local rank. Last enqueued NCCL work: {last}, "
        f"last completed NCCL work: {done}.\n"
    )


def test_the_rank_that_did_not_wait_while_all_others_did(told):
    """As PyTorch 1 prints it, without the name of the rank before the line."""

    def stopped(*ranks, **what):
        return "".join(timed_out(rank, 7, **what).partition(":")[2] for rank in ranks)

    assert told(stopped(1, 2, 3)) == ("missing", [0], "guess")
    assert told.verdict.sentence == (
        "ranks 1-3 waited in ALLREDUCE of 8 elements number 7 until the time was over, and rank 0 did not"
    )
    assert told(stopped(0, 2, 3)) == ("missing", [1], "guess")
    assert told(stopped(0, 2, 3, group="ID 0 PG GUID 0(default_pg)")) == ("missing", [1], "guess")
    for others in (stopped(0, 1, 2), stopped(2, 3), stopped(1, 2, 5), stopped(1, 2, 3, group="7")):
        assert told(others)[1] == []


def test_a_rank_that_did_not_wait_and_has_a_log_of_its_own(told):
    told("step 3\n", "rank_1.log")
    for rank in (0, 2, 3):
        found = told(timed_out(rank, 7), f"rank_{rank}.log")
    assert found[:2] == ("silent", [1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (timed_out(0, 7, 512) + timed_out(1, 7, 1), ("conflict", [0, 1], "likely")),
        (timed_out(0, 7) + timed_out(1, 7) + timed_out(2, 7, kind="BROADCAST"), ("conflict", [2], "guess")),
        (timed_out(0, 7) + timed_out(1, 7) + timed_out(2, 6, group="0 (default_pg)"), ("conflict", [2], "likely")),
        (
            timed_out(0, 7, group="ID 0 PG GUID 0(default_pg)")
            + timed_out(1, 7, group="ID 0 PG GUID 0(default_pg)")
            + queued(0, 8, 6)
            + queued(2, 6, 6),
            ("conflict", [2], "likely"),
        ),
    ],
)
def test_time_outs_of_torch_show_who_is_behind_or_elsewhere(told, text, expected):
    assert told(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        timed_out(0, 7) + timed_out(1, 7),
        timed_out(0, 7, 512, "ALLTOALL_BASE") + timed_out(1, 7, 1, "ALLTOALL_BASE"),  # sizes may differ there
        timed_out(0, 7, kind="SEND") + timed_out(1, 9, kind="RECV"),
        timed_out(0, 7, group="2 (tp)") + timed_out(1, 9, group="3 (dp)"),  # of two communicators
    ],
)
def test_time_outs_that_fit_together_name_nobody(told, text):
    assert told(text)[1] == []


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("RuntimeError: Rank 1 failed to pass monitoredBarrier in 2000 ms\n", [1]),
        ("[rank0]: RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms\n", [1, 3]),
        (
            "Map: 70%|#######[E ProcessGroupGloo.cpp:138] Rank 3 successfully reached monitoredBarrier, but received "
            "errors while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank.\n",
            [0],
        ),
    ],
)
def test_who_did_not_come_to_the_barrier_is_the_root(told, text, ranks):
    assert told(text) == ("missing", ranks, "likely")


STALL = "[1,0]<stderr>:[2026-11-25 10:00:00.1: W horovod/common/operations.cc:5] "


@pytest.mark.parametrize(
    "text",
    [
        f"{STALL}HorovodAllreduce_a_0 [missing ranks: 1, 3]\n",
        f"{STALL}One or more tensors wait\n[1,0]<stderr>:Missing ranks:\n"
        "[1,0]<stderr>:1: [HorovodAllreduce_a_0]\n[1,0]<stderr>:3: [HorovodAllreduce_a_0, HorovodAllreduce_b_0 ...]\n",
    ],
)
def test_ranks_that_horovod_waits_for_are_the_root(told, text):
    assert told(text) == ("missing", [1, 3], "likely")
    assert told(text + "[1,0]<stderr>:step 9\n" * 300) is None, "they came after all"


def came(numbers, head=""):
    line = "[ERROR] HCCL(7,python):2026-11-25-10:00:00.100.000 [a.cc:2] [8][TopoInfoExchangeServer]"
    listed = ",".join(f"[{number:016}]" for number in numbers)
    return f"{head and line + head}\n{line}[DisplayConnectedRank]connected rankinfo[LINE 0]: {listed};\n"


def test_a_gap_in_the_list_of_those_that_came_names_the_missing_rank(told):
    path = "debug/plog/plog-7_20261125100000000.log"
    assert told(came([0, 1, 3], "total connected num is [3],line num is [1]"), path) == ("missing", [2], "likely")
    assert told(came([0, 1, 3], "total connected num is [8],line num is [2]"), path) is None, "the list is not whole"


LINK = (
    "[ERROR] HCCL(7,python3):2026-11-25-10:00:00.100.000 [a.cc:5] [8]   |   10.0.0.9(0)   |  16666  |   10.0.1.8(1)   |"
    "  323  |  client  | time out |   DISABLE  | LinkInfo\n"
)


def test_the_table_of_links_tells_which_rank_waits(told):
    assert told(LINK, "debug/plog/plog-7_20261125100000000.log") == ("chain", [0], "guess")
    assert told.verdict.chain == ["rank 1 -> rank 0 (address 10.0.0.9)"]


@pytest.mark.parametrize(
    ("late", "limit"),
    [
        (
            "[rank1]:[E826 10:11:52.1 ProcessGroupNCCL.cpp:733] [Rank 1] Watchdog caught collective operation timeout: "
            "WorkNCCL(SeqNum=15, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600004 "
            "milliseconds before timing out.\n",
            "init_process_group(timeout=...)",
        ),
        ("[ERROR] EI0002: The wait execution of the Notify register times out.\n", "HCCL_EXEC_TIMEOUT"),
    ],
)
def test_a_rank_without_an_error_may_have_worked_alone(tmp_path, late, limit):
    (tmp_path / "rank_0.log").write_text("Saving: 12%\n")
    (tmp_path / "rank_1.log").write_text(late)
    verdict = job_logs.of_paths([str(tmp_path)], ENTRIES).verdict
    assert verdict.sentence == "rank 0 reported nothing while 1 rank waited"
    assert "worked alone" in verdict.next[-1] and limit in verdict.next[-1]
