"""A launch that runs: the state that its supervisor, its engine and its features share.

It has the plan, the environment of the job and the folder of the attempt's logs.  It starts members, and sends messages
to the user. life.py runs it from its start to its end.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.quoting import quote
from tools.engines import table
from tools.rank import environment, places
from tools.rank.environment import Environment
from tools.supervise.limits import REPORT
from tools.supervise.members import Member
from tools.supervise.world import CannotStart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.command.command import Command
    from tools.command.settings import Settings
    from tools.engines.base import Engine
    from tools.features import Hooks
    from tools.launch.planned import Plan
    from tools.output.voice import Voice
    from tools.supervise.loop import Supervisor
    from tools.supervise.world import World

CANNOT_START = 78
_PROBE = 4096  # bytes, which a disk that is full does not take


class Log:
    """The log of a member, open for adding while the member is started: ``with run.log_of(member) as log``."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file = -1

    def __enter__(self) -> int:
        try:
            self._file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError:
            return -1
        return self._file

    def __exit__(self, *_: object) -> None:
        if self._file >= 0:
            os.close(self._file)


class Run:
    """The launch that runs.

    mark: the value of LAUNCH_JOB; caller: the environment that the user has; environment: the job's part of it
    attempt: the number of the attempt, from 0 on; logs: the folder of its logs; trainer: the command of every rank
    attempts: the outcomes of the attempts that have ended, for launch.json; status: the exit code so far
    """

    plan: Plan
    settings: Settings
    engine: Engine
    hooks: Hooks
    supervisor: Supervisor

    def __init__(self, plan: Plan, command: Command, caller: Environment, voice: Voice, world: World) -> None:
        self.plan, self.command, self.settings, self.voice, self.world = plan, command, command.settings, voice, world
        self.caller = caller
        self.mark = f"{os.path.basename(plan.run_dir)}@{os.uname().nodename}"
        self.attempt = 0
        self.logs = plan.run_dir
        self.trainer = plan.trainer
        self.attempts: list[dict[str, Any]] = []
        self.status = 0
        self.engine = table.make(plan.request.engine, self)
        self.environment = self._environment()

    # ---- messages ----------------------------------------------------------------------------------------------------

    def say(self, line: str) -> None:
        """Prints a line for the user, on stderr."""
        self.voice.say(line)

    def note(self, line: str) -> None:
        """The same, unless --quiet."""
        self.voice.note(line)

    # ---- environment -------------------------------------------------------------------------------------------------

    def _environment(self) -> Environment:
        found = environment.job(self.caller, self.plan.exports)
        if self.attempt:
            found[b"RESUME"] = b"1"
        return found

    def tell_overridden(self) -> None:
        """Prints notes about the caller's environment."""
        for line in caller_notes(self.caller, self.plan.exports, self.plan.request.placement == "pod"):
            self.say(line)

    def keep_environment(self, name: str, found: Environment) -> None:
        """Writes the environment of a member that is not a rank to a file next to its log."""
        with Log(os.path.join(self.logs, name.replace(".env", ".log"))) as log:
            places.keep(os.path.join(self.logs, name), environment.as_shell(sorted(found.items())), log)

    # ---- members -----------------------------------------------------------------------------------------------------

    def rank_members(self) -> list[Member]:
        """New members for all ranks of the plan, in rank order."""
        hosts = self.plan.hosts or [""] * len(self.plan.ranks)
        logs = self.logs
        return [
            Member(str(rank), f"{logs}/rank_{rank}.log", rank, device, host)
            for (rank, device), host in zip(self.plan.ranks, hosts)
        ]

    def log_of(self, member: Member) -> Log:
        return Log(member.log)

    def start(
        self,
        member: Member,
        words: list[str],
        found: Environment,
        out: int | None = None,
        *,
        stdin: int | None = None,
        error: int | None = None,
        folder: str | None = None,
    ) -> bool:
        """Starts a member as a process of ours; False if it could not be started, which counts as its end.

        out: a descriptor for its output; None: its log.  folder: where it runs; None: here.
        """
        if out is None:
            with self.log_of(member) as log:
                return self.start(member, words, found, log, stdin=stdin, error=error, folder=folder)
        member.child = True
        now = self.world.now()
        if out < 0 or (error is not None and error < 0):  # without its log
            self.supervisor.members.began(member, now, os.getpid())
            return self._not_started(member, CANNOT_START)
        try:
            with places.InFolder(folder):
                pid = self.world.start(member.name, words, found, out, stdin=stdin, error=error)
        except CannotStart:
            return self._not_started(member, CANNOT_START)
        except OSError as reason:
            self.supervisor.members.began(member, now, os.getpid())
            os.write(
                out if error is None else error, os.fsencode(f"{reason.filename or words[0]}: {reason.strerror}\n")
            )
            return self._not_started(member, 127 if reason.errno in (errno.ENOENT, errno.ENOTDIR) else 126)
        self.supervisor.began(member, pid, grouped=True)
        return True

    def _not_started(self, member: Member, status: int) -> bool:
        self.world.has_ended(member.name, status)
        return False

    # ---- logs --------------------------------------------------------------------------------------------------------

    def logs_problem(self) -> str:
        """Why the logs do not have the ranks' output; "" if their folder exists and can be written.

        A full disk cuts off logs without any message in them.
        """
        if not os.path.isdir(self.logs):
            return tr(
                "the log folder {folder} is gone, with the logs: it was removed, moved or replaced while the job ran",
                folder=self.logs,
            )
        probe = os.path.join(self.logs, ".probe")
        try:
            with open(probe, "wb") as file:
                file.write(b" " * _PROBE)
        except OSError as error:
            return tr(
                "the log folder {folder} can no longer be written: {reason}; the ends of the logs may be missing; "
                "free space, or choose another disk with --log_dir",
                folder=self.logs,
                reason=strerror(error),
            )
        finally:
            unlink(probe)
        return ""

    # ---- requests to save and to end ---------------------------------------------------------------------------------

    def patience(self) -> int:
        """Seconds that ranks have after a request; where Slurm ends the job, almost all of its KillWait."""
        kill_wait = getattr(self.plan.engine, "kill_wait", 0)
        return self.settings.grace if self.settings.grace_given else max(self.settings.grace, kill_wait - 4)

    def longest_request(self) -> int:
        """The same after any request."""
        before = self.settings.stop_before
        return max(self.patience(), before - REPORT) if before else self.patience()

    # ---- attempts ----------------------------------------------------------------------------------------------------

    def folder_of(self, number: int) -> str:
        """The folder with the logs of this attempt; 0: the first."""
        return os.path.join(self.plan.run_dir, f"restart_{number}") if number else self.plan.run_dir

    def begin_attempt(self, number: int) -> None:
        """Switches the logs and the ranks' command to restart `number`."""
        self.attempt = number
        self.logs = self.folder_of(number)
        self.trainer = self.plan.restart or self.plan.trainer
        self.environment = self._environment()

    def exit_status(self) -> int:
        """The exit code if the job ended now."""
        return self.supervisor.exit_status(self.hooks.others_status())


def unlink(path: str) -> None:
    """Removes the file, if it can be."""
    try:
        os.unlink(path)
    except OSError:
        return


def caller_notes(caller: Environment, exports: Mapping[str, str], in_pod: bool) -> Iterator[str]:
    """The notes, one a line.

    exports: the part of the environment that the launch sets; in_pod: the operator has set variables for the launch.
    """
    replaced = [f"{name}={quote(value)}" for name, value in environment.overridden(caller, exports)]
    if replaced and not in_pod:
        yield tr("note: {names} from your shell is not used; the launch sets its own", names=", ".join(replaced))
    ranks = exports["RANK_SIZE"]
    world = caller.get(b"WORLD_SIZE")
    if world is not None and os.fsdecode(world) != ranks:
        yield tr(
            "note: the ranks get WORLD_SIZE={value} from your shell, but the job has {ranks}; unset it, and they "
            "get the right number",
            value=quote(os.fsdecode(world)),
            ranks=ranks,
        )
    same = [
        f"{name}={quote(os.fsdecode(caller[name.encode()]))}"
        for name in ("RANK", "LOCAL_RANK")
        if name.encode() in caller
    ]
    if same and ranks != "1":
        yield tr(
            "note: all {ranks} ranks get {names} from your shell; unset it, and each rank gets its own number",
            names=", ".join(same),
            ranks=ranks,
        )
