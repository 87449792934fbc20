"""A process next to the launcher: a forked child that observes the job, receives orders and reports what it sees."""

from __future__ import annotations

import os
import select

from tools.supervise import proc
from tools.supervise.events import Heard
from tools.supervise.proc import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tools.launch.run import Run
    from tools.supervise.world import World


def say_all(run: Run, title: str, task: Callable[[int, int], object], seconds: float) -> None:
    """Prints the lines of such a process.  If it cannot start, the job ends as it would without it."""
    try:
        beside = Beside(run.world, title, task)
    except OSError:
        return
    for line in beside.lines(seconds):
        run.say(line)


class Beside:
    """The child, and the pipes to it and from it.

    task: gets the descriptor from which it reads orders, and the one to which it writes lines; 0 and 1 are /dev/null.
    title: the command line that others see.  Raises OSError where no more processes may be started.
    """

    def __init__(self, world: World, title: str, task: Callable[[int, int], object], *, group: bool = True) -> None:
        self._world = world
        orders, self._orders = os.pipe()
        self.told, tells = os.pipe()
        world.own(self._orders, self.told)

        def child() -> None:
            proc.retitle(title.encode())
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            task(orders, tells)

        try:
            self.pid = world.fork(child, group=group)
        except OSError:
            world.disown(self._orders)
            world.disown(self.told)
            raise
        finally:
            os.close(orders)
            os.close(tells)
        os.set_blocking(self._orders, False)

    def order(self, text: str) -> None:
        """Sends one order, a line.  SIGCONT wakes the process if it was stopped, so that the pipe never fills up."""
        self._world.kill(self.pid, signals.SIGCONT)
        try:
            os.write(self._orders, os.fsencode(text + "\n"))
        except OSError:
            return  # it has ended

    def send(self, data: bytes, seconds: float) -> None:
        """Sends all orders at once, and their end; what the process does not read in this time is lost."""
        end = self._world.now() + seconds
        poll = select.poll()
        poll.register(self._orders, select.POLLOUT)
        try:
            while data and self._world.now() < end:
                if poll.poll(200):
                    data = data[os.write(self._orders, data) :]
                else:
                    self.wake()  # it may have been stopped
        except OSError:
            pass  # it has ended, and `lines` has none
        self.end_orders()

    def lives(self) -> bool:
        return self._world.lives(self.pid)

    def wake(self) -> None:
        self._world.kill(self.pid, signals.SIGCONT)

    def kill(self, number: int = signals.SIGKILL) -> None:
        self._world.kill(self.pid, number)

    def end_orders(self) -> None:
        """Ends the orders."""
        if self._orders >= 0:
            self._world.disown(self._orders)
            self._orders = -1

    def close(self) -> None:
        """Closes both pipes."""
        self.end_orders()
        if self.told >= 0:
            self._world.disown(self.told)
            self.told = -1

    def hear(self, feature: str) -> None:
        """Turns its lines into events for this feature from now on."""
        rest = b""

        def take(block: bytes) -> Iterable[Heard]:
            nonlocal rest
            *lines, rest = (rest + block).split(b"\n")
            return [Heard(feature, os.fsdecode(line)) for line in lines if line]

        self._world.watch(self.told, take)
        self.told = -1  # the world closes it

    def lines(self, seconds: float) -> Iterable[str]:
        """Its lines until it has ended or the time is over; then it is killed."""
        end = self._world.now() + seconds
        rest = b""
        poll = select.poll()
        poll.register(self.told, select.POLLIN)
        while (left := end - self._world.now()) > 0:
            if not poll.poll(min(left, 0.2) * 1000):
                self.wake()  # it may have been stopped
                continue
            block = os.read(self.told, 1 << 16)
            if not block:
                break
            *whole, rest = (rest + block).split(b"\n")
            yield from map(os.fsdecode, whole)
        else:
            self.kill()
        self.close()
