"""The root by what torchrun, mpirun, srun and NCCL say of the ranks, with and without the ranks' own logs."""

import pytest
from logs.known import ENTRIES

from tools.diagnosis import answer, job_logs, words
from tools.logs import known_failures

KEY = 'Traceback (most recent call last):\n  File "t.py", line 3, in f\nKeyError: 4\n'
VALUE = 'Traceback (most recent call last):\n  File "t.py", line 9, in g\nValueError: no batch\n'
GLOO = 'Traceback (most recent call last):\n  File "t.py", line 5, in h\nRuntimeError: Connection closed by peer\n'


@pytest.fixture
def told(tmp_path):
    def tell(**texts):
        for name, text in texts.items():
            (tmp_path / f"{name}.log").write_text(text)
        found = job_logs.of_paths([str(tmp_path)], ENTRIES)
        tell.found = found
        verdict = found.verdict
        return verdict and (verdict.kind, [one.rank for one in verdict.roots], verdict.certainty)

    return tell


def table(rank, code=1, local=0, host="n1", when="10:00:00", traceback="", others=()):
    rows = "".join(
        f"[{number}]:\n  time      : 2026-11-25_10:00:09\n  host      : {host}\n  rank      : {other} (local_rank: 7)\n"
        f"  exitcode  : 1 (pid: {900 + other})\n  error_file: <N/A>\n  traceback : To enable traceback see: x\n"
        for number, other in enumerate(others, 1)
    )
    return (
        'Traceback (most recent call last):\n  File "/v/bin/torchrun", line 8, in <module>\n'
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
        f"{'=' * 60}\nt.py FAILED\n{'-' * 60}\nFailures:\n{rows}{'-' * 60}\nRoot Cause (first observed failure):\n"
        f"[0]:\n  time      : 2026-11-25_{when}\n  host      : {host}\n  rank      : {rank} (local_rank: {local})\n"
        f"  exitcode  : {code} (pid: {900 + rank})\n  error_file: <N/A>\n"
        f"  traceback : {traceback or 'To enable traceback see: x'}\n{'=' * 60}\n"
    )


RAISED = 'Traceback (most recent call last):\n    File "/c/t.py", line 241, in main\n      die\n  NameError: no die\n'


def test_errors_that_differ_in_their_paths_are_the_same(told):
    frame = 'Traceback (most recent call last):\n  File "t.py", line 3, in f\n'
    busy = frame + "OSError: [Errno 39] Directory not empty: '/out/{}' -> '/out/{}'\n"
    same = {"rank_0": busy.format("tmp-s0yub", "point-5"), "rank_1": busy.format("tmp-djier", "last one")}
    assert told(**same) == ("error", [0, 1], "likely")
    assert "failed for the same reason" in told.found.verdict.sentence
    told(rank_0=frame + "KeyError: 'lr'\n", rank_1=frame + "KeyError: 'decay'\n")
    assert "failed for the same reason" not in told.found.verdict.sentence


def test_the_last_part_of_torchruns_table_names_the_root(told):
    assert told(main=table(20, others=(16, 17))) == ("killed", [20], "likely")
    assert told.found.verdict.roots[0].host == "n1"


def test_that_torchrun_killed_other_ranks_later_is_no_cause(told):
    """It sends SIGKILL to ranks that outlive its SIGTERM by half a minute."""

    def both(when):
        killed = table(1, others=(0,), when=when).replace("exitcode  : 1 (pid: 900)", "exitcode  : -9 (pid: 900)")
        return killed.replace("see: x", "Signal 9 (SIGKILL) received by PID 900", 1)

    assert told(main=both("09:59:38")) == ("killed", [1], "likely")
    assert "rank-killed" not in [fault.entry.code for fault in told.found.faults]
    told(main=both("10:00:08"))  # it may have been why the other one failed
    assert told.found.faults[0].entry.code == "rank-killed"
    told(main=table(1, code=-9))
    assert told.found.faults[0].entry.code == "rank-killed"


def test_an_exception_in_the_table_is_quoted(told):
    text = table(304, traceback=RAISED) + "srun: error: n2: task 20: Exited with exit code 1\n"
    assert told(main=text) == ("error", [304], "likely")
    assert told.found.verdict.text == "NameError: no die"


def test_of_the_tables_of_several_hosts_the_earliest_counts(told):
    late = table(3, code=-6, when="10:00:07")
    assert told(main=late + table(9, host="n2", when="10:00:02")) == ("killed", [9], "likely")
    stopped = table(9, code=-15, host="n2", when="10:00:01")
    assert told(main=late + stopped) == ("killed", [3], "likely")


def test_tasks_of_srun_are_no_ranks_where_each_starts_some(told):
    text = "srun: error: n1: task 1: Exited with exit code 1\n" + table(12, code=-9)
    assert told(main=text) == ("killed", [12], "likely")


def test_the_table_decides_between_exceptions_without_times(told):
    found = told(torchrun=table(1), rank_0=GLOO, rank_1=KEY, rank_2=VALUE, rank_3="step 1\n")
    assert found == ("error", [1], "likely")
    assert told(torchrun=table(2), rank_0=GLOO, rank_1=KEY, rank_2=VALUE)[1] == [2]


def test_an_own_exception_is_not_sure_where_another_rank_ended_first(told):
    assert told(torchrun=table(2, code=-11), rank_0=KEY, rank_1=GLOO, rank_2="step 1\n")[2] == "likely"


def test_a_killed_rank_is_the_root_though_another_one_raised_after_it(told):
    died = 'Traceback (most recent call last):\n  File "t.py", line 5, in h\nRuntimeError: bad reply\n'
    assert told(torchrun=table(2, code=-9), rank_0=died, rank_1=GLOO, rank_2="step 1\n") == ("killed", [2], "likely")
    assert told(torchrun=table(0), rank_0=KEY, rank_1=GLOO, rank_2="step 1\n")[1] == [0]


@pytest.mark.parametrize(
    "text",
    [
        "mpirun detected that one or more processes exited with non-zero status. The first process to do so was:\n\n"
        "  Process name: [[36148,1],3]\n  Exit code:    1\n",
        "prterun detected that one or more processes exited with non-zero status.\n\n"
        "   Process name: [prterun-n1-77@1,3] Exit code:    1\n",
        "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\nwith errorcode 1.\n",
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 3 PID 77 RUNNING AT n1\n"
        "=   KILLED BY SIGNAL: 9 (Killed)\n",
        "srun: error: n1: task 3: Out Of Memory\n",
        "mpiexec has exited due to process rank 3 with PID 0 on\nnode n1 exiting improperly.\n",
    ],
)
def test_what_other_starters_say(told, text):
    assert told(main="step 1\n" + text) == ("killed", [3], "likely")


def test_a_card_that_fails_is_the_ranks_own_error(told):
    late = "[rank13]:[E817 17:50:33.6 x.cpp:607] [Rank 13] Watchdog caught collective operation timeout: WorkNCCL(1)\n"
    own = (
        "[rank12]:[E817 17:40:34.2 x.cpp:1515] [PG 0 Rank 12] Process group watchdog thread terminated with exception: "
    )
    assert told(main=late + own + "CUDA error: uncorrectable ECC error encountered\n") == ("error", [12], "likely")


def test_the_rank_behind_the_number_on_the_host_counts(told):
    late = "[default1]:[rank13]:[E1 x.cpp:6] [Rank 13] Watchdog caught collective operation timeout: WorkNCCL(1)\n"
    text = "[default0]:step 1\n[default1]:step 1\n" + late + "[default0]:" + KEY.replace("\n", "\n[default0]:")
    assert told(main=text + "\n") == ("error", [12], "likely")


def test_memory_that_is_used_up_on_one_rank(told):
    text = "[rank2]: torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 336.00 MiB.\n"
    for rank in (5, 10):
        text += f"[rank{rank}]:[E x.cpp:563] [Rank {rank}] Watchdog caught collective operation timeout: WorkNCCL(1)\n"
    assert told(main=text) == ("error", [2], "likely")
    assert told.found.faults[0].entry.code == "out-of-device-memory"


def test_nccl_names_the_process_whose_card_has_no_memory_left(told):
    text = (
        "n1:77:78 [0] misc/socket.cc:49 NCCL WARN socketProgress: Connection closed by remote peer n1<51159>\n"
        "n1:80:81 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n"
    )
    assert told(main=text) == ("error", [None], "likely")
    assert told.found.verdict.sentence == "process 80 (host n1, device 3) failed first: Cuda failure 'out of memory'"
    assert told.found.faults[0].entry.code == "out-of-device-memory"


def test_memory_that_a_program_may_have_done_without_is_never_sure(told):
    caught = "torch.cuda.OutOfMemoryError: CUDA out of memory; trying a smaller batch\n"
    assert told(rank_0=caught, rank_1=GLOO, main=table(1, code=-15))[2] == "likely"


def test_workers_that_were_stopped_are_no_error_of_their_own(told):
    stopped = GLOO.replace("Connection closed by peer", "DataLoader worker (pid 7) is killed by signal: Terminated.")
    assert told(rank_0=stopped, rank_1=stopped, rank_2=KEY)[1] == [2]


def test_a_line_that_is_cut_keeps_the_names_in_it_whole():
    entry = known_failures.KnownFailure(code="c", cause="x", remedy="y", words=[["was low on"]])
    text = f"{'x' * 90} pod/job-worker-1    The node was low on memory{' and' * 90}"
    assert words.window(text, entry, 80).startswith("...pod/job-worker-1    The node was low on")
    assert words.window(text, entry, 600).endswith(" and")


def test_a_line_that_is_cut_keeps_what_the_known_failure_is_about():
    entry = known_failures.KnownFailure(code="c", cause="x", remedy="y", sources=("--master_addr=/",))
    before, match = f"{'launch ' * 30}--node_rank=1 --master_port=29511", "--master_addr=/root/setup.bashrc"
    shown = words.window(f"{before} {match} {'--more=1 ' * 30}--last", entry, 80)
    assert match in shown and len(shown) <= 80 and words.cut(shown, 80) == shown
    shown = words.window(f"{before} {match} {'--more=1 ' * 30}--last", entry, 240)
    assert match in shown and shown.endswith("--last")  # a reason often ends the line


def test_a_line_that_is_cut_keeps_the_reason_at_its_end():
    line = f"Failed to pull image: {'rpc error: ' * 20}x509: certificate signed by unknown authority"
    shown = words.cut(line, 120)
    assert shown.startswith("Failed to pull image: rpc") and shown.endswith(
        "x509: certificate signed by unknown authority"
    )
    assert len(shown) <= 120 and "..." in shown[3:-3]
    assert words.cut("x " * 4000, 120).endswith("..."), "its reader has cut it: its end is not the end"
    assert words.cut("a\nb" * 100, 90).isprintable()


def test_gpus_have_no_commands_of_ascend(told):
    late = "[rank1]:[E817 17:50:33.6 x.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(1)\n"
    told(main="[rank0]: step 1\n" + late)
    assert "hccn_tool" not in "\n".join(words.lines_of(answer.of_logs(told.found)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "srun: error: n1: tasks 1,3: Aborted\nsrun: error: n1: task 2: Terminated\n",
            ("killed", [1, 3], "likely"),
        ),
        ("srun: error: n1: tasks 4-6: Bus error\n", ("killed", [4, 5, 6], "likely")),
        (
            "srun: error: n2: task 1: Segmentation fault (core dumped)\nsrun: error: n1: task 0: Segmentation fault\n",
            ("killed", [1, 0], "likely"),
        ),
        (
            "srun: error: n2: task 4: Exited with exit code 1\nsrun: error: n1: tasks 0-1: Exited with exit code 1\n",
            ("killed", [4], "guess"),
        ),
        ("E:failed (exitcode: 1) local_rank: 5 (pid: 77) of binary: python\n", ("killed", [5], "likely")),
        (
            "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with signal SIGKILL\n",
            ("killed", [2], "likely"),
        ),
        ("application called MPI_Abort(MPI_COMM_WORLD, 1) - process 3\n", ("killed", [3], "likely")),
        ("=   PID 77 RUNNING AT n1\n=   EXIT CODE: 9\n", None),
        ("The first process to do so was:\nProcess name: 1\nExit code: 1\n", ("killed", [1], "likely")),
        ("[ERROR] ME(1:2,MainProcess): Worker process 77 exit with exception.\n", ("killed", [], "likely")),
    ],
)
def test_ranks_in_other_words(told, text, expected):
    assert told(main=text) == expected
    assert not told.found.verdict or not any("was started" in line for line in told.found.verdict.next)
