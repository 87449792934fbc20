"""Engines whose ranks are agents (tools/rank/agent.py): what the agents are told, and what they tell.

An agent writes lines that begin with a secret of this launch; the engine brings them to its stdout, which is a pipe to
us, or the agents write into a pipe of ours themselves.  The rest of the engine's output is its log.
"""

from __future__ import annotations

import os
import sys

from hccl_tools.common import project
from tools.engines.base import Engine
from tools.launch.engines import facts
from tools.rank import environment
from tools.supervise import events

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hccl_tools.common.record import Row
    from tools.rank.environment import Environment

KILLED = 137
LONGEST = 1 << 20  # bytes of a line that has no end yet
AGENT = project.path("tools", "rank", "agent.py")


class AgentLines:
    """What comes out of an engine, in blocks of bytes: `take` returns the events in it.

    secret: begins what agents say.  logs: the folder of the attempt's logs.  own: where the engine's own lines go.
    cancelled: the event when the engine itself ends the job; None: from then on a rank that ends has not failed by
    itself.
    """

    def __init__(self, secret: bytes, logs: str, own: int, cancelled: events.Cancelled | None) -> None:
        self.secret, self.logs, self.own, self.cancelled = secret + b" ", os.fsencode(logs), own, cancelled
        self.ordered = False  # we have ordered the ranks to stop
        self.judged = True  # a rank's end may be a failure of its own
        self.failed = 0  # the last status of a rank that was not 0
        self._told_cancel = self._told_warning = False
        self._trainers: dict[bytes, bytes] = {}  # rank -> process id of its trainer
        self._running: set[bytes] = set()  # ranks whose trainer runs
        self._earlier: dict[bytes, set[bytes]] = {}  # of ranks that were started again: the processes before
        self._left: dict[str, list[tuple[int, int, str]]] = {}  # rank -> what it has left, as far as it is told
        self._rest = b""
        self._found: list[Row] = []
        self._forget()

    def _forget(self) -> None:
        self._began: list[tuple[str, int, str]] = []
        self._ended: list[tuple[str, int]] = []
        self._more: list[Row] = []
        self._own: list[bytes] = []
        self._files: dict[bytes, list[bytes]] = {}
        self._grown = b""

    def take(self, block: bytes) -> list[Row]:
        """The events in the next bytes; b"" is the end of them."""
        *lines, self._rest = (self._rest + block).split(b"\n")
        if not block or len(self._rest) > LONGEST:
            lines.append(self._rest)
            self._rest = b""
        for line in lines:
            if line:
                self._line(line)
        self._tell()
        found, self._found = self._found, []
        return found

    def _line(self, line: bytes) -> None:
        """With the secret, maybe behind a label of mpirun or srun, it is from an agent; else from the engine itself."""
        _, found, said = line.partition(self.secret)
        word, _, rest = said.partition(b" ")
        rank, _, value = rest.partition(b" ")
        if found and word == b"cancelled" and not rank:
            self._cancelled()
        elif found and word == b"handed" and not rank:
            self._tell()
            self._found.append(events.Handed())
        elif found and word == b"warned" and not rank:
            self._warned()
        elif not found or not (rank.isdigit() or rank == b"scheduler") or not self._of_rank(word, rank, value):
            self._own.append(line + b"\n")

    def _of_rank(self, word: bytes, rank: bytes, value: bytes) -> bool:
        """Keeps what an agent says of its rank; False if it can be from none."""
        if word == b"exit" and _are_numbers(value.split(b" ", 1)):  # its status, and on our host its process
            self._has_ended(rank, *value.split(b" ", 1))
        elif word == b"start" and len(value.split()) == 2 and value.split()[0].isdigit():  # its process and its host
            self._has_begun(rank, *value.split())
        elif word == b"left" and (row := _left_row(value)):
            self._left.setdefault(rank.decode(), []).append(row)
        elif word == b"waits" and rank.decode() in self._left:  # all of what it has left is told
            self._more.append(
                events.Left(rank.decode(), self._left.pop(rank.decode()), value.decode("ascii", "replace"))
            )
        elif word == b"failed" and value.split(b" ", 1)[0].isdigit():
            pid, _, words = value.partition(b" ")
            self._more.append(events.LeftFailed(rank.decode(), int(pid), _words(words)))
        elif word == b"line":
            self._files.setdefault(b"rank_%s.log" % rank, []).append(value + b"\n")
        elif word == b"plog":
            name = b"plog/rank_%s/debug/plog/plog-%s_away.log" % (rank, self._trainers.get(rank, b"0"))
            self._files.setdefault(name, []).append(value + b"\n")
        elif word == b"wrote":
            self._grown = rank
        else:
            return self._of_others(word, rank.decode(), value.decode("utf-8", "replace"))
        return True

    def _has_begun(self, rank: bytes, pid: bytes, host: bytes) -> None:
        """A rank that has begun before was started again; the end of the process before may come later, or never."""
        before = self._trainers.get(rank)
        if before is not None:
            self._tell()  # events are told in their order
            self._earlier.setdefault(rank, set()).add(before)
            if rank in self._running:
                self._found.append(events.Ended([(rank.decode(), KILLED)]))
        self._trainers[rank] = pid
        self._running.add(rank)
        self._began.append((rank.decode(), int(pid), host.decode("utf-8", "replace")))

    def _has_ended(self, rank: bytes, status: bytes, pid: bytes = b"") -> None:
        """The process of a rank has ended, unless it is one before the last start."""
        if pid and pid != self._trainers.get(rank):
            if pid in self._earlier.get(rank, ()):
                return
            self._has_begun(rank, pid, b"")  # it was killed before it could tell its start
        self._running.discard(rank)
        self._ended.append((rank.decode(), int(status)))
        self.failed = int(status) or self.failed

    def _of_others(self, word: bytes, rank: str, value: str) -> bool:
        """The same for what the agent says to a feature, or of an order."""
        if word == b"has":
            self._more.append(events.Heard("together", f"has {rank} {value}"))
        elif word == b"asked":
            self._more.append(events.Warned(rank))
        elif word == b"busy":
            self._more.append(events.Heard("restarts", f"busy {rank} {value}"))
        elif word == b"stack":
            self._more.append(events.StackTold(rank, value))
        else:
            return False
        return True

    def _cancelled(self) -> None:
        """The engine, not the launcher, has told an agent to end."""
        if self.cancelled:
            if not self._told_cancel:  # every agent says it
                self._told_cancel = True
                self._tell()
                self._found.append(self.cancelled)
        elif not self.ordered and self.judged:
            self._tell()
            self.judged = False

    def _warned(self) -> None:
        """Slurm has sent SIGUSR1 to a rank, and so to all."""
        if not self._told_warning:  # every agent says it
            self._told_warning = True
            self._more.append(events.Warned())

    def _tell(self) -> None:
        """Everything that was kept, first the lines of logs, because the supervisor may print those."""
        write(self.own, b"".join(self._own))
        for name, texts in self._files.items():
            append(os.path.join(self.logs, name), b"".join(texts))
        if self._began:
            self._found.append(events.Began(self._began))
        self._found += self._more  # an agent says where its rank is before it says that the rank has ended
        if self._ended:
            self._found.append(events.Ended(self._ended, self.judged))
        if self._grown:
            self._found.append(events.LogGrew(self._grown.decode()))
        self._forget()


def _left_row(value: bytes) -> tuple[int, int, str] | None:
    """(process id, group, command) of a process that a rank has left; None if it is of another form."""
    pid, _, rest = value.partition(b" ")
    group, _, words = rest.partition(b" ")
    return (int(pid), int(group), _words(words)) if pid.isdigit() and group.isdigit() else None


def _are_numbers(words: list[bytes]) -> bool:
    return all(word.isdigit() for word in words)


def _words(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def write(descriptor: int, text: bytes) -> None:
    """Writes all of it; not what a full disk, or a pipe that nobody reads, does not take."""
    try:
        while text:
            text = text[os.write(descriptor, text) :]
    except OSError:
        return


def append(path: bytes, text: bytes) -> None:
    """Adds the text to the file, in a folder that may be missing; not if the disk or the rights forbid it."""
    try:
        if b"/plog/" in path:
            os.makedirs(os.path.dirname(path), exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    except OSError:
        return
    write(file, text)
    os.close(file)


class Agents(Engine):
    """An engine that starts an agent for each rank."""

    def command(self, environment_: Environment) -> list[str]:
        """The engine with its options, up to the agent; may change the environment in which it is started."""
        raise NotImplementedError

    def agent_words(self) -> list[str]:
        """The agent's command, to which the trainer's words are added.  No variable steers this Python."""
        return self.there([sys.executable, "-I", "-S", AGENT])

    def there(self, words: list[str]) -> list[str]:
        """A command of ours for the hosts of the job, where one of them has this project in another folder."""
        if not self.run.plan.engine.elsewhere:
            return words
        from hccl_tools.hosts import elsewhere  # few launches need it

        return elsewhere.command(words)

    def environment(self, secret: str = "") -> Environment:
        """The environment of the engine, and so of its agents; secret: empty for --dry_run."""
        run = self.run
        found = dict(run.environment)
        for name in [name for name in found if name.startswith(b"LAUNCH_") and name not in KEPT]:
            del found[name]
        files = run.plan.rank_files
        told = {
            "LAUNCH_ENGINE": self.name,
            "LAUNCH_DEVICES": facts.devices_words(run.plan.engine),
            "LAUNCH_TARGET": self._target(),
            "LAUNCH_SIZES": facts.sizes_words(run.plan.sizes),
            "LAUNCH_BIND": run.plan.binding.word() if run.plan.binding else "",
            "LAUNCH_FOLDER": os.getcwd(),
            "LAUNCH_HOST": os.uname().nodename,
            "LAUNCH_EXPORTS": " ".join(run.plan.exports),
            "LAUNCH_LOGS": run.logs,
            "LAUNCH_PLOGS": run.plan.plogs.word() if run.plan.plogs else "",
            "LAUNCH_LINKS": self.links(),
            "LAUNCH_UMASK": umask(),
            "LAUNCH_HANG": str(run.settings.hang_timeout),
            "LAUNCH_PYTHON": sys.executable,
            "LAUNCH_LOG_ENDS": os.environ.get("LAUNCH_LOG_ENDS", ""),
            "LAUNCH_FILES": "" if files is None else "\n" + "\n".join(files),
            "LAUNCH_WORDS": "each" if run.plan.request.per_rank_words else "",
        }
        if secret:
            told.update(LAUNCH_SECRET=secret, LAUNCH_GRACE=str(run.settings.grace), LAUNCH_JOB=run.mark)
            told["LAUNCH_ASK"] = str(run.longest_request())
            told["LAUNCH_LEFTOVERS"] = run.settings.leftovers
            told["LAUNCH_WATCH"] = "yes" if run.settings.watch else ""
            told["LAUNCH_RESTART"] = str(run.settings.restart_wait) if run.attempt and run.settings.restart_wait else ""
            told["LAUNCH_KEEPS_GOING"] = "yes" if run.settings.keep_going else ""
        found.update((os.fsencode(name), os.fsencode(value)) for name, value in told.items())
        for own, given in run.command.mpirun.values.items():  # of mpirun -x NAME=VALUE: for the ranks alone
            found[environment.FOR_RANKS + os.fsencode(own)] = os.fsencode(given)
        return found

    def _target(self) -> str:
        """Whose devices the ranks use, as tools/rank/device.py reads it."""
        target = self.run.plan.request.device_target
        if target == "CPU":
            return ""
        return f"{target} named" if self.run.plan.engine.named else target

    def links(self) -> str:
        """The folder in which agents make links to the logs; empty: in none."""
        return ""

    def bears_failures(self, found: Environment) -> bool:
        """Whether the engine itself must let ranks go on when one fails: in what --dry_run prints.

        Agents hide a rank's failure from it, so that it still ends the job when an agent dies.
        """
        return b"LAUNCH_SECRET" not in found and self.run.settings.keep_going

    def own_log(self) -> str:
        return os.path.join(self.run.logs, f"{self.name}.log")


KEPT = (b"LAUNCH_LANG", b"LAUNCH_LOCKS", b"LAUNCH_STRAGGLER")  # variables of the launch that ranks have, too


def umask() -> str:
    """The umask of this process, as ``0022``."""
    mask = os.umask(0)
    os.umask(mask)
    return f"{mask:04o}"


def secret() -> str:
    """A word that nobody else knows."""
    return f"launch-{int.from_bytes(os.urandom(12), 'big'):x}"
