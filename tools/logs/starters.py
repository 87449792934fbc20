"""Reads what programs that start ranks report about them: torchrun, mpirun of Open MPI and MPICH, srun.

- worker_ended: the process of a rank that has failed: its rank (rank), its place on its host (local), srun's numbers
  (task), its PID (pid), its host (host), and how it ended (code, signal, or the signal's name: how).
  deepspeed reports no rank: "--local_rank" of its line "exits with return code" is that of the last one it started.
- ended_code: the exit code of the process that the lines before it name (code).
- ended_rank, ended_host, ended_time: from torchrun's table of the ranks of one host that failed.
- first_failure: the head of the table's last part, which is about the rank that failed first.
"""

from __future__ import annotations

from tools.logs.forms import form

FORMS = (
    form(  # torchrun
        "worker_ended",
        ("failed (exitcode: ",),
        r"failed \(exitcode: (?P<code>-?\d{1,10})\) local_rank: (?P<local>\d{1,7}) \(pid: (?P<pid>\d{1,10})\)",
    ),
    form(  # torchrun lists all that failed: "  rank      : 1 (local_rank: 1)"
        "ended_rank",
        ("(local_rank: ",),
        r"\brank\s{1,10}: (?P<rank>\d{1,7}) \(local_rank: (?P<local>\d{1,7})\)",
    ),
    form("first_failure", ("Root Cause (first observed failure)",)),
    form("ended_host", (" host      : ",), r" host {6}: (?P<host>[\w.:-]{1,255})"),
    form("ended_time", (" time      : ",), r" time {6}: (?P<when>\d{4}-\d\d-\d\d_\d\d:\d\d:\d\d)"),
    form("ended_code", (" exitcode  : ",), r" exitcode {2}: (?P<code>-?\d{1,10}) \(pid: (?P<pid>\d{1,10})\)"),
    form(
        "worker_ended",
        (
            "mpirun noticed that process rank ",
            "mpiexec noticed that process rank ",
            "prterun noticed that process rank ",
        ),
        r"noticed that process rank (?P<rank>\d{1,7}) with PID (?P<pid>\d{1,10}) on node (?P<host>\S+) "
        r"exited on signal (?P<signal>\d{1,3})",
    ),
    form(  # mpirun, of a rank that ended without MPI_Finalize
        "worker_ended",
        ("has exited due to process rank ",),
        r"has exited due to process rank (?P<rank>\d{1,7}) with PID",
    ),
    form(  # srun: error: node1: task 3: Killed; also "tasks 1,3", "tasks 8-15,18"
        "worker_ended",
        ("srun: error: ",),
        r"srun: error: (?P<host>[^\s:]+): tasks? (?P<task>\d{1,7}(?:[-,]\d{1,7}){0,999}): "
        r"(?:(?P<how>Killed|Out Of Memory|Segmentation fault|Bus error|Aborted|Illegal instruction"
        r"|Floating point exception)"
        r"|Exited with exit code (?P<code>\d{1,3}))",
    ),
    form(  # mpirun: "The first process to do so was:", "Process name: [[36148,1],0]", "Exit code:    1"
        "worker_ended",
        ("Process name: [",),
        r"Process name: \[(?:\[\d{1,9},\d{1,9}\],|[^\s\[\]@]{1,200}@\d{1,9},)(?P<rank>\d{1,7})\]",
    ),
    form("ended_code", ("Exit code: ",), r"Exit code: {1,8}(?P<code>\d{1,3})\s*$"),
    form(
        "worker_ended",
        ("MPI_ABORT was invoked on rank ",),
        r"MPI_ABORT was invoked on rank (?P<rank>\d{1,7}) in communicator MPI_COMM_WORLD\b",
    ),
    form(
        "worker_ended",
        ("application called MPI_Abort(",),
        r"application called MPI_Abort\(MPI_COMM_WORLD, (?P<code>-?\d{1,10})\) - process (?P<rank>\d{1,7})",
    ),
    form(  # horovodrun without mpirun: "Process name: 1", "Exit code: 1"
        "worker_ended",
        ("Process name: ",),
        r"Process name: (?P<rank>\d{1,7})\s*$",
    ),
    form(  # torch.multiprocessing.spawn; the number is that of the process on its host
        "worker_ended",
        ("ProcessExitedException: process ",),
        r"process (?P<local>\d{1,7}) terminated with (?:signal (?P<how>SIG\w{2,8})|exit code (?P<code>\d{1,10}))",
    ),
    form(
        "worker_ended",
        (" terminated with the following error:",),
        r"-- Process (?P<local>\d{1,7}) terminated with the following error:",
    ),
    form(  # MPICH and Intel: "=   RANK 1 PID 4711 RUNNING AT node1", "=   KILLED BY SIGNAL: 9 (Killed)"
        "worker_ended",
        (" RUNNING AT ",),
        r"= {1,8}RANK (?P<rank>\d{1,7}) PID (?P<pid>\d{1,10}) RUNNING AT (?P<host>[\w.:-]{1,255})",
    ),
    form("ended_code", ("KILLED BY SIGNAL: ",), r"KILLED BY SIGNAL: (?P<signal>\d{1,3})"),
    form("ended_code", ("EXIT STATUS: ", "EXIT CODE: "), r"EXIT (?:STATUS|CODE): (?P<code>\d{1,3})"),
)
