"""Where a rank starts: its cores, its folder for CANN's logs, its threads' policy, the file with its environment.

The launcher uses it for the ranks of its own host, and the agents for theirs.
"""

from __future__ import annotations

import os

from tools.rank import environment

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tools.rank.environment import Environment

PLOG_VARIABLE = b"ASCEND_PROCESS_LOG_PATH"
CORES_VARIABLE = b"MSRUN_CPU_LIST"  # tells the cores to MindSpore's set_cpu_affinity


def note(log: int, text: str) -> None:
    """Writes one line to the log of a rank, before its own; a full disk does not matter."""
    try:
        os.write(log, os.fsencode(f"note: {text}\n"))
    except OSError:
        return


class Plogs:
    """CANN's own logs of the ranks, the plogs: each rank has a folder for them.

    word: which plogs stay (--keep_plogs), and after a blank the folder of the user, if there is one; empty: the ranks
    do not use CANN.  logs: the folder of the attempt's logs.
    """

    def __init__(self, word: str, logs: str) -> None:
        self.keep, _, self.theirs = word.partition(" ")
        self._logs = logs

    def folder(self, rank: str) -> str:
        """The rank's folder; empty if it does not use CANN."""
        if not self.keep:
            return ""
        return os.path.join(self.theirs or os.path.join(self._logs, "plog"), f"rank_{rank}")

    def open(self, rank: str, log: int) -> Environment:
        """Makes the rank's folder, and names it to CANN, which may not make the folders above it.

        If it cannot be made or written, the variable stays as the user has it, and the rank's log states why.
        """
        folder = self.folder(rank)
        if not folder:
            return {}
        why = os.strerror(13)
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            why = error.strerror or str(error)
        if os.path.isdir(folder) and os.access(folder, os.W_OK | os.X_OK):
            return {PLOG_VARIABLE: os.fsencode(folder)}
        note(log, f"CANN's logs of this rank are not in {folder}: {why}")
        return {}


class Bound:
    """While a rank is started, this process is bound to the rank's cores, which the rank inherits.

    cores: {rank: its cores}; None: ranks are not bound.  A rank that cannot be bound runs all the same.
    """

    def __init__(self, cores: Mapping[int, Iterable[int]] | None, rank: int, log: int) -> None:
        self._wanted = None if cores is None else set(cores.get(rank, ()))
        self._log = log
        self._before: set[int] | None = None

    def __enter__(self) -> Environment:
        if self._wanted is None:
            return {}
        if not self._wanted:
            note(self._log, "this rank is not bound to cores: none are found for it on this host")
            return {}
        before = os.sched_getaffinity(0)
        try:
            os.sched_setaffinity(0, self._wanted)
        except OSError as error:
            note(self._log, f"this rank is not bound to cores: {error.strerror}")
            return {}
        self._before = before
        from hccl_tools.common.words import ranges

        note(self._log, f"this rank is bound to cores {ranges(os.sched_getaffinity(0))}")
        return {CORES_VARIABLE: b"[%s]" % ",".join(map(str, sorted(self._wanted))).encode()}

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            os.sched_setaffinity(0, self._before)


class InFolder:
    """While a rank is started, this process is in the rank's folder, which the rank inherits; None: where it is."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._before = -1

    def __enter__(self) -> None:
        """Raises OSError."""
        if self._folder is not None:
            before = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.chdir(self._folder)
            except OSError:
                os.close(before)
                raise
            self._before = before

    def __exit__(self, *_: object) -> None:
        if self._before >= 0:
            os.fchdir(self._before)
            os.close(self._before)


class BatchPolicy:
    """Gives the batch policy to processes that this one starts meanwhile, if `wanted`.

    MindSpore 2.10 has a race: if a thread runs before the one that woke it, the connection to the scheduler counts as
    failed, and MindSpore retries it, for minutes at worst.  It happens on a busy machine, where both threads share a
    core.  Under the batch policy a woken thread waits.  A policy that the user has chosen stays.  This process itself
    must not keep it: on a busy machine it would notice the end of a rank late.
    """

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted

    def __enter__(self) -> None:
        self._wanted = self._wanted and os.sched_getscheduler(0) == os.SCHED_OTHER and _policy(os.SCHED_BATCH)

    def __exit__(self, *_: object) -> None:
        if self._wanted:
            _policy(os.SCHED_OTHER)


def _policy(policy: int) -> bool:
    try:
        os.sched_setscheduler(0, policy, os.sched_param(0))
    except OSError:
        return False
    return True


class Kept:
    """The files with the environments of the ranks, as shell commands.

    Only the owner can read them: an environment may contain passwords.  A rank also runs without its file.
    """

    def __init__(self, base: Environment, logs: str) -> None:
        self._base, self._logs = base, logs
        self._text = b""
        self._without: frozenset[bytes] = frozenset()

    def write(self, rank: str, own: Environment, log: int) -> None:
        """own: what the rank has besides the job's part, or instead."""
        if not self._text or self._without != own.keys():
            self._without = frozenset(own)
            self._text = environment.as_shell(sorted(pair for pair in self._base.items() if pair[0] not in own))
        keep(os.path.join(self._logs, f"rank_{rank}.env"), environment.as_shell(sorted(own.items())) + self._text, log)


def keep(path: str, text: bytes, log: int) -> None:
    """Writes such a file; the log reports it if that fails."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            os.fchmod(file, 0o600)
            while text:
                text = text[os.write(file, text) :]
        finally:
            os.close(file)
    except OSError:
        note(log, f"{path} cannot be written; this process starts all the same")
        try:
            os.unlink(path)
        except OSError:
            return
