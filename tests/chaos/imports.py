"""Rounds with --import_once: what the import does, and a fault for the process that imports."""

from __future__ import annotations

from random import Random

from tests.chaos.faults import Fault
from tests.chaos.launches import Launch

OFTEN = 0.3  # of the launches that can have it
ROLE, ANCHOR = "imports", "importing"
SHARED = ["", "", "", ", print"]  # after a sleep
NOT_SHARED = [", fail", ", exit 4", ", thread", ", process", ", socket", ", file"]  # each rank imports for itself
SIGNALS = {"KILL": 6, "STOP": 3, "TERM": 4, "INT": 2, "HUP": 1, "QUIT": 1, "ABRT": 1}


def draw(random: Random, launch: Launch, always: bool) -> list[Fault]:
    """Gives the launch the option, in a part of the rounds; what happens to the process that imports."""
    if launch.script == "run_mpirun.sh" or (random.random() >= OFTEN and not always):
        return []
    force = ",force" if launch.target != "CPU" else ""
    launch.options.append(f"--import_once=imported{force}")
    also = random.choice(NOT_SHARED if random.random() < 0.15 else SHARED)
    launch.imports = f"sleep {random.choice([0, 0, 0.1, 0.3, 0.6])}{also}"
    if random.random() < 0.55:
        return []
    delay = random.choice([0, 0, 0.05, 0.1, 0.2, 0.3, 0.6])
    name = random.choices(list(SIGNALS), list(SIGNALS.values()))[0]
    resume = random.choice([None, 0.2, 0.5]) if name == "STOP" else None
    return [Fault("signal", ANCHOR, delay, ROLE, name, 0.0, resume)]
