"""The process that imports, and whose forks become ranks: how it is started, and which lines it sends.

It is started with the command of a rank; hook/sitecustomize.py runs in it before the program would begin.  Its nearest
subreaper, the launcher or an agent, becomes the parent of each rank.  So the kernel reports the end of a rank to it.  A
rank waits until it is known there.

Orders come to the process as a file, lines from it through a pipe:
  imports MODULE             this import begins
  began RANK PID             a rank that waits
  unstarted RANK STATUS      a rank that could not be forked, or whose process between was ended
  without KIND MODULE WHAT   the ranks cannot be forks, see reasons.py
"""

from __future__ import annotations

import marshal
import os

from hccl_tools.common.language import tr
from hccl_tools.common.record import Row
from tools.launch.programs import import_once
from tools.supervise.events import StackTold
from tools.supervise.members import IMPORTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tools.launch.programs.import_once import Imports
    from tools.rank.environment import Environment
    from tools.supervise.world import World

_PATH, _VARIABLE = b"PYTHONPATH", b"LAUNCH_IMPORTS"
_LONGEST = 1 << 16  # bytes of a line


class Fork(Row):
    """A rank that must become a fork.

    own: what it has besides the part of the environment that all have; cores: those that it is bound to; None: it is
    not bound
    """

    name: str
    words: list[str]
    own: Environment
    log: str
    cores: list[int] | None


class Importing:
    """The process of these ranks, from its start until all of them have begun.

    began: gets the name and the process of a rank that waits; unstarted: the name and the exit status of one that will
    not begin; without: why there will be none, as reasons.py has it.
    """

    def __init__(
        self,
        world: World,
        imports: Imports,
        began: Callable[[str, int], None],
        unstarted: Callable[[str, int], None],
        without: Callable[[str], None],
    ) -> None:
        self._world, self._imports = world, imports
        self._told = {b"began": began, b"unstarted": unstarted}
        self._without = without
        self._ranks = 0
        self._gate = self._lines = -1
        self._rest = b""

    def refusal(self, base: Environment, forks: Sequence[Fork]) -> str:
        """Why these ranks cannot be forks, as reasons.py has it; empty: they can."""
        if not self._world.children.adopts:
            return "adopts - -"
        names = self._imports.names()
        if name := import_once.differing([fork.own for fork in forks], import_once.beginnings(names)):
            return f"differs - {name}"
        if name := import_once.names_log({**base, **forks[0].own}, names):
            return f"names - {name}"
        return ""

    def start(
        self,
        base: Environment,
        forks: Sequence[Fork],
        logs: str,
        own_words: bool,
        run: Callable[[list[str], Environment], None],
    ) -> str:
        """Starts it by `run`, with the cores and the policy that this process has now; returns why not, or nothing.

        base: the part of the environment that all ranks have, with the job's mark; logs: the folder of their logs.
        own_words: the ranks have words of their own.
        """
        try:
            orders = _nameless(os.path.join(logs, f".{IMPORTS}_{forks[0].name}"), self._orders(base, forks, own_words))
        except OSError as error:
            return f"folder - {logs}\t{error.strerror}"
        self._ranks = len(forks)
        self._lines, told = os.pipe()
        gate, self._gate = os.pipe()
        self._world.own(self._gate)
        self._world.watch(self._lines, self._take)
        self._world.children.early = {}
        theirs = (orders, told, gate)
        for descriptor in theirs:
            os.set_inheritable(descriptor, True)
        run(_longest(fork.words for fork in forks), _environment(base, forks, theirs))
        for descriptor in theirs:
            os.close(descriptor)
        return ""

    def _orders(self, base: Environment, forks: Iterable[Fork], own_words: bool) -> bytes:
        no_device = tr("--import_once: MindSpore keeps a device other than DEVICE_ID; leave the option out")
        late = tr("note: the program sets NAME, which was read at the import: leave out --import_once")
        orders = {
            "python_path": base.get(_PATH),
            "program": self._imports.program,
            "modules": self._imports.modules,
            "ranks": [
                {
                    "name": fork.name.encode(),
                    "own": fork.own,
                    "log": os.fsencode(os.path.abspath(fork.log)),
                    "cores": fork.cores,
                    "words": list(map(os.fsencode, fork.words)) if own_words else None,
                }
                for fork in forks
            ],
            "frozen": list(map(str.encode, import_once.beginnings(self._imports.names()))),
            "anew": list(map(str.encode, import_once.OF_MPI)),
            "late": late,
            "no_device": no_device if self._imports.forced else "",
        }
        return marshal.dumps(orders, 2)

    def _take(self, block: bytes) -> list[Row]:
        """The next bytes.  The kernel tells the ends, so that no line does."""
        told: list[Row] = []
        *lines, self._rest = (self._rest + block).split(b"\n")
        self._rest = self._rest[-_LONGEST:]
        if not block:
            self._lines = -1  # the world closes it
        for line in lines:
            word, _, rest = line.partition(b" ")
            name, _, number = rest.partition(b" ")
            if word in self._told and number.isdigit():
                self._told[word](name.decode("ascii", "replace"), int(number))
            elif word == b"imports":
                told = [StackTold(IMPORTS, rest.decode("utf-8", "replace"))]
            elif word == b"without":
                self._without(rest.decode("utf-8", "replace"))
        return told

    def open_gate(self) -> None:
        """Lets all ranks begin, once all of them are known."""
        try:
            os.write(self._gate, b"g" * self._ranks)
        except OSError:
            return  # all of them have ended

    def forget(self) -> None:
        """The process is not needed any more; a rank that still waits ends itself."""
        self._world.children.early = None
        if self._gate >= 0:
            self._world.disown(self._gate)
        if self._lines >= 0:
            self._world.unwatch(self._lines)
        self._gate = self._lines = -1


def _longest(commands: Iterable[list[str]]) -> list[str]:
    """The longest command: what ps shows of a rank can be as long as what it shows of the parent."""
    return max(commands, key=lambda words: sum(map(len, map(os.fsencode, words))))


def _environment(base: Environment, forks: Sequence[Fork], theirs: tuple[int, ...]) -> Environment:
    """What all ranks have; what the hook removes comes last, with room for what each rank has for itself."""
    names = {name for fork in forks for name in fork.own}
    found = {name: value for name, value in base.items() if name not in names and name != _PATH}
    found[_PATH] = os.fsencode(import_once.HOOK) + (b":" + base[_PATH] if base.get(_PATH) else b"")
    room = max(sum(len(name) + len(value) + 2 for name, value in fork.own.items()) for fork in forks)
    found[_VARIABLE] = ",".join(map(str, theirs)).encode() + b"," + b"-" * room
    return found


def _nameless(path: str, text: bytes) -> int:
    """A file with this text that no other process can find, at its beginning.  Raises OSError."""
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
