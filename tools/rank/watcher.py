"""The process next to an agent that stops the trainer when the agent was killed."""

from __future__ import annotations

import os

from tools.supervise import guardian, proc
from tools.supervise.proc import signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from tools.rank.agent import Agent

LOOK_EVERY = 2.0  # seconds


def watch(of: Agent, lifeline: int, agent: int, handled: Iterable[int]) -> None:
    """Stops the trainer if the agent was killed; wakes the agent if it was stopped.

    lifeline: a pipe that only the agent keeps open; agent: its process; handled: the signals that it handles
    """
    told = of.told
    proc.ignore(*handled)
    proc.retitle(b"mindspore-launch-watcher")
    null = os.open(os.devnull, os.O_RDWR)  # the engine waits for the end of the agent's streams
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    trainer: set[int] = set()
    guardian.follow(lifeline, agent, LOOK_EVERY, lambda: proc.send(agent, signals.SIGCONT), trainer)
    if told["BUS"]:
        of.voice.tell_exit(137, next(iter(trainer), None))  # the engine may not notice it
    if told["HEALS"]:  # it is started again at once, on the same device: the marks are the next one's, too
        guardian.kill(trainer)
    else:
        guardian.finish(told.job, trainer, of.grace, b"" if told.is_scheduler else told.name.encode())
