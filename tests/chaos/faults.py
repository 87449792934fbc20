"""Faults at a moment of the run: signals to any process of ours, damage to the log folder and to launch.json."""

from __future__ import annotations

import os
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.chaos import processes
from tests.chaos.allowed import Allowed

ANCHORS = ["start", "start", "running", "running", "running", "ending"]
TARGETS = {  # role -> how often it is drawn
    "launcher": 6,
    "guardian": 3,
    "console": 3,
    "report": 2,
    "rank": 5,
    "scheduler": 2,
    "starting": 2,
    "child": 1,
    "group": 2,
    "all": 1,
    "engine": 2,
    "agent": 2,
    "watcher": 2,
}
SIGNALS = {"KILL": 6, "STOP": 4, "TERM": 5, "INT": 2, "HUP": 2}
DAMAGE = [
    "remove folder",
    "move folder",
    "folder is a file",
    "remove json",
    "empty json",
    "spoil json",
    "json is a folder",
]
RIGHTS = ["read-only folder", "fill disk"]
STOPS_LAUNCHER = {"launcher", "group", "all"}
HARMLESS = {"guardian", "console", "child", "report", "stacks"}  # the job goes on without them
CARRIERS = {"engine", "agent", "watcher"}


@dataclass
class Fault:
    """One fault, as drawn."""

    kind: str  # signal, or one of DAMAGE and RIGHTS
    anchor: str = "running"  # start, running (all ranks are up) or ending (the first rank is about to end)
    delay: float = 0.0  # seconds after that
    target: str = ""  # a role
    name: str = ""  # of the signal
    pick: float = 0.0  # which process of the role
    resume: float | None = None  # seconds until SIGCONT; None: never
    stops_job: bool = False  # the user's end of a job that would not end by itself

    def __str__(self) -> str:
        what = f"SIG{self.name} to {self.target}" if self.kind == "signal" else self.kind
        if self.name == "STOP":
            what += ", for ever" if self.resume is None else f", for {self.resume} s"
        return f"{what}, {self.delay} s after {self.anchor}"


def draw(random: Random, endless: bool) -> list[Fault]:
    """One to four faults, sometimes none; and for a job that would not end by itself the user's signal."""
    count = random.choices([0, 1, 2, 3, 4], [3, 8, 4, 2, 1])[0]
    faults = [_draw_one(random) for _ in range(count)]
    if endless:
        name = random.choice(["TERM", "INT", "HUP"])
        target = random.choice(["launcher", "group"])
        faults.append(Fault("signal", "running", 1.0, target, name, stops_job=True))
    return faults


def _draw_one(random: Random) -> Fault:
    anchor, delay = random.choice(ANCHORS), random.choice([0, 0, 0.05, 0.1, 0.2, 0.4, 0.7])
    if random.random() < 0.3:
        return Fault(random.choice([*DAMAGE, *RIGHTS]), anchor, delay)
    target = random.choices(list(TARGETS), list(TARGETS.values()))[0]
    name = random.choices(list(SIGNALS), list(SIGNALS.values()))[0]
    resume = random.choice([None, 0.2, 0.5]) if name == "STOP" else None
    return Fault("signal", anchor, delay, target, name, random.random(), resume)


def lacks(fault: Fault, disk: bool) -> str:
    """Why this machine cannot have the fault."""
    if fault.kind == "read-only folder" and os.getuid() == 0:
        return "a read-only folder: root writes to it all the same"
    if fault.kind == "fill disk" and not disk:
        return "a full disk: needs root and unshare, to mount a small one"
    return ""


# ---- signals ----------------------------------------------------------------------------------------


def signal_to(fault: Fault, there: dict[str, list[int]], launcher: int) -> tuple[list[int], str]:
    """Sends the signal; the processes that got it, and what was done.  None if no process has that role now."""
    number = getattr(signal, "SIG" + fault.name)
    if fault.target == "group":
        try:
            os.killpg(launcher, number)
        except (ProcessLookupError, PermissionError):
            return [], ""
        return [launcher], f"SIG{fault.name} to the launcher's process group {launcher}"
    pids = (
        sorted(pid for found in there.values() for pid in found)
        if fault.target == "all"
        else there.get(fault.target, [])
    )
    if fault.target != "all" and pids:
        pids = [pids[int(fault.pick * len(pids))]]
    hit = [pid for pid in pids if processes.send(pid, number)]
    return hit, f"SIG{fault.name} to {fault.target} {hit}"


# What a signal that ends its target allows beside that signal's own code, by role; a role that is not here: nothing.
_ALLOWED = {
    "group": Allowed({1, 78, 137}, {"plan", "notice"}),
    "all": Allowed({1, 78, 137}, {"plan", "notice"}),
    "starting": Allowed({78, 137}, {"SIGKILL", "fork", "notice", "plan"}),
    **{role: Allowed({1, 78, 137, 143, 255}, {"SIGKILL", "SIGTERM", "lost"}) for role in CARRIERS},
}


def allowed_signal(fault: Fault) -> Allowed:
    """What may happen after a signal that was sent."""
    if fault.name == "STOP":
        return Allowed(silent="the launcher was stopped" if fault.target in STOPS_LAUNCHER else "")
    if fault.target in HARMLESS:
        return Allowed(claims={"notice"})
    allowed = Allowed({128 + getattr(signal, "SIG" + fault.name)}, {f"SIG{fault.name}"})
    allowed.add(_ALLOWED.get(fault.target, Allowed()))
    if fault.name == "KILL" and fault.target in STOPS_LAUNCHER:
        allowed.silent = "the launcher was killed"
        allowed.leftovers = "what was being started was not killed" if fault.target == "all" else ""
    if fault.name == "INT" and fault.target in ("rank", "scheduler"):
        allowed.codes.add(1)  # Python is told so while it starts
    return allowed


# ---- damage -----------------------------------------------------------------------------------------


def damage(kind: str, logs: Path) -> str:
    """Does it to the newest run folder in `logs`; what was done, empty if there is no run folder."""
    runs = [path for path in logs.glob("*-*") if path.is_dir() and not path.is_symlink()]
    if not runs:
        return ""
    run = runs[0]
    try:
        done = _DAMAGE[kind](run, run / "launch.json")
    except OSError as error:  # it was damaged before
        return f"{kind} of {run} failed: {error}"
    return done or f"{kind}: {run}"


def _remove_folder(run: Path, json: Path) -> None:
    shutil.rmtree(run)


def _move_folder(run: Path, json: Path) -> None:
    run.rename(run.parent / "moved")


def _folder_is_a_file(run: Path, json: Path) -> None:
    run.rename(run.parent / "moved")
    run.write_text("not a folder\n")


def _json_is_a_folder(run: Path, json: Path) -> None:
    json.unlink()
    json.mkdir()


def _fill(run: Path, json: Path) -> None:
    with open(run / "filler", "wb") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()


def _fill_disk(run: Path, json: Path) -> str:
    try:
        _fill(run, json)
    except OSError as error:
        return f"fill disk: {error}"
    return ""


_DAMAGE = {
    "remove folder": _remove_folder,
    "move folder": _move_folder,
    "folder is a file": _folder_is_a_file,
    "remove json": lambda run, json: json.unlink(),
    "empty json": lambda run, json: json.write_text("") and None,
    "spoil json": lambda run, json: json.write_bytes(b'{"job": [\0\xff') and None,
    "json is a folder": _json_is_a_folder,
    "read-only folder": lambda run, json: run.chmod(0o500),
    "fill disk": _fill_disk,
}


def allowed_damage(kind: str) -> Allowed:
    """What may happen after the damage was done."""
    if kind in ("remove json", "empty json", "spoil json", "json is a folder"):
        return Allowed(set(), {"json"})
    # 78: a rank cannot begin without its log and the file with its environment
    claims = {"folder", "json"} | ({"disk"} if kind == "fill disk" else set())
    return Allowed({78}, claims)
