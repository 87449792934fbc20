"""The parent of ranks that import once, as the launcher sees it: a member of the job until all ranks have begun.

It is started with the command of a rank; hook/sitecustomize.py is what it does before the program would begin.  Each
rank is its fork, and a child of the launcher, which is the nearest subreaper: so the kernel tells the rank's end to the
launcher, as of every rank.  A rank waits until the launcher knows it.

Orders come to it as a file, lines from it through a pipe:
  imports MODULE             this import begins
  began RANK PID             a rank that waits
  unstarted RANK STATUS      a rank that could not be forked, or whose process between was ended
  without KIND MODULE WHY    the ranks cannot be forks
"""

from __future__ import annotations

import marshal
import os

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless
from tools.launch.programs import frozen, import_once
from tools.launch.run import CANNOT_START, unlink
from tools.rank import environment
from tools.supervise.events import StackTold
from tools.supervise.members import IMPORTS, Member

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hccl_tools.common.record import Row
    from tools.engines.local import Rank
    from tools.launch.programs.import_once import Imports
    from tools.launch.run import Run
    from tools.rank.environment import Environment

PATH, _VARIABLE = b"PYTHONPATH", b"LAUNCH_IMPORTS"
_LONGEST = 1 << 16  # bytes of a line


class Parent:
    """One attempt's.  otherwise: starts the ranks without it."""

    def __init__(self, run: Run, imports: Imports, otherwise: Callable[[], None]) -> None:
        self._run, self._imports, self._otherwise = run, imports, otherwise
        self._ranks: list[Rank] = []
        self._by_name: dict[bytes, Member] = {}  # those about which it has said nothing
        self._cores: list[list[int] | None] = []
        self._begun = 0
        self._gate = self._lines = -1
        self._rest = b""

    @property
    def done(self) -> bool:
        """Whether all ranks have begun: nobody needs the parent any more."""
        return self._begun == len(self._ranks)

    def add(self, rank: Rank, cores: list[int] | None) -> None:
        """One rank; cores: those that it is bound to; None: it is not bound."""
        self._ranks.append(rank)
        self._by_name[rank.member.name.encode()] = rank.member
        self._cores.append(cores)

    # ---- its start ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts it, with the cores and the policy that this process has now."""
        run = self._run
        begins = frozen.beginnings(self._imports.names())
        if name := frozen.differing([rank.own for rank in self._ranks], begins):
            self._without(tr("{name} is read at the import, and differs from rank to rank", name=harmless(name)))
            return
        try:
            orders = self._orders()
        except OSError as error:
            self._without(tr("{folder} cannot be written: {reason}", folder=run.logs, reason=error.strerror))
            return
        self._lines, told = os.pipe()
        gate, self._gate = os.pipe()
        run.world.own(self._gate)
        run.world.watch(self._lines, self._take)
        run.world.children.early = {}
        member = Member(IMPORTS, os.path.join(run.logs, f"{IMPORTS}.log"))
        run.supervisor.members.add([member])
        theirs = (orders, told, gate)
        for descriptor in theirs:
            os.set_inheritable(descriptor, True)
        run.start(member, self._words(), self._environment(theirs))
        for descriptor in theirs:
            os.close(descriptor)

    def _words(self) -> list[str]:
        """The longest command: what ps shows of a rank can be as long as what it shows of the parent."""
        return max((rank.words for rank in self._ranks), key=lambda words: sum(map(len, map(os.fsencode, words))))

    def _environment(self, theirs: tuple[int, ...]) -> Environment:
        """The job's part; what the hook removes comes last, with room for what each rank has for itself."""
        names = {name for rank in self._ranks for name in rank.own}
        base = self._run.environment
        found = {name: value for name, value in base.items() if name not in names and name != PATH}
        found[environment.MARK] = os.fsencode(self._run.mark)
        found[PATH] = os.fsencode(import_once.HOOK) + (b":" + base[PATH] if base.get(PATH) else b"")
        room = max(sum(len(name) + len(value) + 2 for name, value in rank.own.items()) for rank in self._ranks)
        found[_VARIABLE] = ",".join(map(str, theirs)).encode() + b"," + b"-" * room
        return found

    def _orders(self) -> int:
        """The file with the orders."""
        run = self._run
        differ = run.plan.request.per_rank_words
        forced = self._imports.forced
        no_device = tr("--import_once: MindSpore keeps another device than DEVICE_ID names; leave the option out")
        late = tr("note: the program sets NAME, which was read at the import: leave out --import_once")
        orders = {
            "python_path": run.environment.get(PATH),
            "program": self._imports.program,
            "modules": self._imports.modules,
            "ranks": [
                {
                    "name": rank.member.name.encode(),
                    "own": {name: value for name, value in rank.own.items() if name != environment.MARK},
                    "log": os.fsencode(os.path.abspath(rank.member.log)),
                    "cores": cores,
                    "words": list(map(os.fsencode, rank.words)) if differ else None,
                }
                for rank, cores in zip(self._ranks, self._cores)
            ],
            "frozen": list(map(str.encode, frozen.beginnings(self._imports.names()))),
            "late": late,
            "no_device": no_device if forced else "",
        }
        return _nameless(os.path.join(run.logs, f".{IMPORTS}"), marshal.dumps(orders, 2))

    # ---- what it says ------------------------------------------------------------------------------------------------

    def _take(self, block: bytes) -> list[Row]:
        """The next bytes.  The kernel tells the ends, so that no line does."""
        told: list[Row] = []
        *lines, self._rest = (self._rest + block).split(b"\n")
        self._rest = self._rest[-_LONGEST:]
        if not block:
            self._lines = -1  # the world closes it
        for line in lines:
            word, _, rest = line.partition(b" ")
            if word == b"imports":
                told = [StackTold(IMPORTS, rest.decode("utf-8", "replace"))]
            elif word == b"began":
                self._began(rest)
            elif word == b"unstarted":
                self._unstarted(rest)
            elif word == b"without" and not self._begun:
                self._without(_why(rest.decode("utf-8", "replace")))
        return told

    def _began(self, rest: bytes) -> None:
        """A rank has been forked, and waits at the gate."""
        member, pid = self._member(rest)
        supervisor = self._run.supervisor
        if member is None or not pid.isdigit():
            return
        member.child = True
        self._run.world.children.began(int(pid), member.name)
        supervisor.began(member, int(pid), grouped=True)
        if not supervisor.stopping.running:
            supervisor.stopping.begin_late(member)
        self._one_more()

    def _unstarted(self, rest: bytes) -> None:
        """There may be no more processes, or somebody has ended the process between."""
        member, status = self._member(rest)
        if member is None or not status.isdigit():
            return
        member.child = True
        if int(status) != CANNOT_START:
            self._run.supervisor.members.began(member, self._run.world.now(), os.getpid())
        self._run.world.has_ended(member.name, int(status))
        self._one_more()

    def _member(self, rest: bytes) -> tuple[Member | None, bytes]:
        """(the rank of the first word, if it has not begun, the other word)."""
        name, _, other = rest.partition(b" ")
        found = self._by_name.pop(name, None)
        return found, other

    def _one_more(self) -> None:
        self._begun += 1
        if self.done:
            self._open_gate()
            unlink(os.path.join(self._run.logs, f"{IMPORTS}.log"))  # each rank's log has all of it

    def _open_gate(self) -> None:
        try:
            os.write(self._gate, b"g" * len(self._ranks))
        except OSError:
            return  # all of them have ended

    def _without(self, why: str) -> None:
        """Starts the ranks as ever, unless the job is ending."""
        if self._run.supervisor.stopping.running:
            self._run.note(import_once.without(why))
            self._otherwise()
            self._begun = len(self._ranks)

    def forget(self) -> None:
        """The attempt has ended; a rank that still waits ends itself."""
        self._run.world.children.early = None
        if self._gate >= 0:
            self._run.world.disown(self._gate)
        if self._lines >= 0:
            self._run.world.unwatch(self._lines)
        self._gate = self._lines = -1


def _nameless(path: str, text: bytes) -> int:
    """A file with this text that nobody else finds, at its beginning.  Raises OSError."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.unlink(path)
        while text:
            text = text[os.write(file, text) :]
        os.lseek(file, 0, os.SEEK_SET)
    except OSError:
        os.close(file)
        raise
    return file


def _why(said: str) -> str:
    """What the parent says, for people: KIND MODULE WHY."""
    kind, _, rest = said.partition(" ")
    module, _, what = map(harmless, rest.partition(" "))
    if kind == "threads":
        return tr(
            "the import of {module} starts threads ({number}), which forks do not have", module=module, number=what
        )
    if kind == "children":
        return tr("the import of {module} starts processes ({number})", module=module, number=what)
    if kind == "open":
        return tr("the import of {module} opens {what}, which forks would share", module=module, what=what)
    if kind == "variable":
        return tr("the import of {module} reads {name}, which each rank has for itself", module=module, name=what)
    return tr("the import of {module} failed: {reason}", module=module, reason=what)
