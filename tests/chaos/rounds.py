"""One round: draws it, starts what it drew, injects the faults, waits for the end, and judges."""

from __future__ import annotations

import math
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tests.chaos import faults, imports, launches, processes, settings, verdicts, world
from tests.chaos.allowed import Allowed
from tests.chaos.faults import Fault
from tests.chaos.launches import Launch, Rank
from tests.chaos.settings import Setting
from tests.chaos.world import Started, World

PATIENCE = 6.0  # seconds until the user ends a job that would not end by itself
BOUND = 30.0  # seconds after which a launch hangs
MAY_STOP_JOB = {"launcher", "group", "all", "rank", "starting", "engine", "agent", imports.ROLE}


@dataclass
class Drawn:
    """What the seed and the round's number say."""

    launch: Launch
    setting: Setting
    faults: list[Fault]
    second: Launch | None = None  # a job on the same devices


def draw(seed: int, number: int, import_once: bool = False) -> Drawn:
    """The same for the same seed and number, on every machine; import_once: wherever it can be."""
    random = Random(f"{seed}.{number}")
    launch = launches.draw(random)
    setting = settings.draw(random)
    terminal, twice, waits = random.random() < 0.04, random.random() < 0.06, random.random() < 0.5
    injected = faults.draw(random, launch.is_endless())
    injected += imports.draw(Random(f"{seed}.{number}.imports"), launch, import_once)
    drawn = Drawn(launch, setting, injected)
    if terminal and not setting.name.startswith("ulimit -u"):
        launch.stdout = launch.stderr = "pty"
        injected.append(Fault("hang up", random.choice(faults.ANCHORS), 0.2))
    if twice and launch.script == "ascend2p.sh":
        launch.target = "Ascend"
        ranks = [Rank("sleep 0.2"), Rank("sleep 0.1")]
        drawn.second = Launch("ascend2p.sh", ranks, ["--wait_for_devices"] if waits else [], ["config.yaml"], "Ascend")
    return drawn


@dataclass
class Running:
    """A launch of the round while it runs."""

    launch: Launch
    started: Started
    faults: list[Fault]
    logs: Path
    allowed: Allowed
    notes: list[str] = field(default_factory=list)
    anchors: dict[str, float] = field(default_factory=dict)
    groups: set[int] = field(default_factory=set)
    may_wait: bool = False  # a fault, or nothing, would end it
    stopped: bool = False  # the launcher got SIGSTOP and no SIGCONT
    impatient: bool = False
    disturbed: bool = False
    gone: set[str] = field(default_factory=set)  # of launcher and guardian
    resumes: list[tuple[float, list[int], Fault]] = field(default_factory=list)

    def look(self) -> dict[str, list[int]]:
        """The processes of each role now; their groups are remembered."""
        there = processes.marked(self.started.mark)
        self.groups |= {process.group for process in there}
        ranks = {int(path.name.split(".")[1]) for path in self.started.out.glob("rank_*.*")}
        return processes.roles(there, self.started.process.pid, ranks)

    def step(self) -> bool:
        """Does what is due; whether the launcher still runs."""
        if self.started.process.poll() is not None:
            return False
        now = time.monotonic()
        self._reach(now)
        for fault in list(self.faults):
            if fault.anchor in self.anchors and now >= self.anchors[fault.anchor] + fault.delay:
                self.faults.remove(fault)
                self._inject(fault, now)
        self.resume(now)
        if now - self.started.since > PATIENCE and not self.impatient and (self.may_wait or self.launch.is_endless()):
            self._lose_patience()
        return True

    def _reach(self, now: float) -> None:
        self.anchors.setdefault("start", self.started.since)
        if "ending" in self.anchors:
            return
        names = [path.name for path in self.started.out.iterdir()]
        if imports.ANCHOR in names:
            self.anchors.setdefault(imports.ANCHOR, now)
        up = {name.split(".")[0] for name in names if name.startswith("rank_")}
        if len(up) == len(self.launch.ranks):
            self.anchors.setdefault("running", now)
        if any(name.startswith("ended_") for name in names):
            self.anchors.setdefault("running", now)
            self.anchors["ending"] = now

    def _inject(self, fault: Fault, now: float) -> None:
        if fault.kind == "hang up":
            done = "the terminal hangs up" if self.started.hang_up() else ""
            allowed = Allowed({129, 141}, {"SIGHUP"}, "the terminal is gone")
        elif fault.kind == "signal":
            hit, done = faults.signal_to(fault, self.look(), self.started.process.pid)
            done, allowed = done if hit else "", faults.allowed_signal(fault)
            if hit:
                self._remember_stop(fault, hit, now)
        else:
            done, allowed = faults.damage(fault.kind, self.logs), faults.allowed_damage(fault.kind)
        self.notes.append(f"{now - self.started.since:.2f} s: {done or f'nothing there for: {fault}'}")
        if done:
            self.disturbed = True
            self.allowed.add(allowed)
            if fault.name != "STOP" and fault.target == "guardian":
                self._guards_gone("guardian")  # any signal ends it until it ignores them
            if fault.name == "KILL" and fault.target in ("launcher", "group"):
                self._guards_gone("launcher")
                if not any(self.started.out.glob("rank_*.*")) and "guardian" not in self.look():
                    self.allowed.leftovers = "there was no guardian yet, and no rank"

    def _remember_stop(self, fault: Fault, hit: list[int], now: float) -> None:
        if fault.name != "STOP":
            return
        self.may_wait = self.may_wait or fault.target in MAY_STOP_JOB
        if fault.target == "guardian" and fault.resume is None:
            self._guards_gone("guardian")
        if fault.resume is not None:
            self.resumes.append((now + fault.resume, hit, fault))
        elif fault.target in faults.STOPS_LAUNCHER:
            self.stopped = True
            if fault.target == "all":
                self._guards_gone("guardian")

    def _guards_gone(self, target: str) -> None:
        """Without launcher and guardian nobody can end the ranks."""
        self.gone.add(target)
        if self.gone == {"launcher", "guardian"}:
            self.allowed.leftovers = "neither launcher nor guardian can run"

    def resume(self, until: float) -> None:
        """SIGCONT to what was stopped and is due."""
        for due, pids, fault in [entry for entry in self.resumes if entry[0] <= until]:
            self.resumes.remove((due, pids, fault))
            if fault.target == "group":
                subprocess.run(["kill", "-CONT", "--", f"-{pids[0]}"], stderr=subprocess.DEVNULL)
            for pid in pids:
                processes.send(pid, signal.SIGCONT)
            self.notes.append(f"SIGCONT to {pids}")

    def _lose_patience(self) -> None:
        self.impatient = True
        name = "KILL" if self.stopped else "TERM"
        self._inject(Fault("signal", "start", PATIENCE, "launcher", name), time.monotonic())
        if "plan" not in self.allowed.claims:
            self.allowed.add(Allowed({78}))


@dataclass
class Result:
    """What came of a round."""

    number: int
    problems: list[str]
    lacks: list[str]
    notes: list[str]  # what was drawn and done, and all output
    seconds: float = 0.0


def play(drawn: Drawn, number: int, place: World, disk: bool) -> Result:
    """The whole round."""
    if lacking := launches.lacks(drawn.launch):
        return Result(number, [], [lacking], [f"not played: {lacking}"])
    began = time.monotonic()
    place.make()
    lacks = [text for fault in drawn.faults if (text := faults.lacks(fault, disk))]
    injected = [fault for fault in drawn.faults if not faults.lacks(fault, disk)]
    setting = Setting() if drawn.setting.lacks else drawn.setting
    lacks += [drawn.setting.lacks] if drawn.setting.lacks else []
    logs = place.folder / drawn.launch.log_dir
    small = any(fault.kind == "fill disk" for fault in injected)
    if small:
        logs.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k,mode=1777", "chaos", str(logs)], check=True)
    try:
        running = [_begin(place, drawn.launch, setting, injected, "first", number, drawn.second is not None)]
        if drawn.second:
            running.append(_begin(place, drawn.second, Setting(), [], "second", number, True))
            running[1].may_wait = False
        if small:
            running[0].allowed.add(Allowed({78}, {"disk"}))
        problems, notes = _to_the_end(running, place)
    finally:
        if small:
            subprocess.run(["umount", "--lazy", str(logs)], check=False)
    if problems:
        notes.append(f"the folder is kept: {place.folder}")
    else:
        subprocess.run(["chmod", "-R", "u+rwx", str(place.folder)], check=False)
        shutil.rmtree(place.folder, ignore_errors=True)
    return Result(number, problems, lacks, notes, time.monotonic() - began)


def _begin(
    place: World, launch: Launch, setting: Setting, injected: list[Fault], name: str, number: int, twice: bool
) -> Running:
    started = world.start(place, launch, setting, name, f"{place.folder.parent.name}-{number}-{name}")
    allowed = Allowed({78} if twice else set(), {"twice"} if twice else set())
    allowed.add(setting.allowed)
    notes = [f"{name}: {started.command}", f"setting: {setting.name}; stdout {launch.stdout}, stderr {launch.stderr}"]
    return Running(launch, started, list(injected), place.folder / launch.log_dir, allowed, notes)


def _to_the_end(running: list[Running], place: World) -> tuple[list[str], list[str]]:
    """Steps until all have ended or hang; then (problems, notes)."""
    left = list(running)
    end = time.monotonic() + BOUND
    while left and time.monotonic() < end:
        left = [one for one in left if one.step()]
        time.sleep(0.01)
    problems, notes = [], []
    for other in running[1:]:  # the damage may have hit its folder
        other.allowed.claims |= running[0].allowed.claims & {"folder", "json", "disk"}
    for one in running:
        problems += _judge(one, place, hangs=one in left)
        notes += one.notes
    return problems, notes


def _judge(one: Running, place: World, hangs: bool) -> list[str]:
    one.resume(math.inf)
    code = None if hangs else one.started.process.returncode % 256
    if one.started.process.returncode is not None and one.started.process.returncode < 0:
        code = 128 - one.started.process.returncode
    end = time.monotonic() + (0 if hangs or one.allowed.leftovers else 12 if one.allowed.silent else 4)
    while (there := processes.marked(one.started.mark, one.groups)) and time.monotonic() < end:
        time.sleep(0.02)
    lines = [str(process) for process in there]
    if one.allowed.leftovers and lines:
        one.notes.append(f"left, and allowed ({one.allowed.leftovers}):")
    one.notes += lines
    one.notes += [processes.details(process.pid) for process in there] if hangs else []
    processes.kill(there)
    if hangs:
        one.started.process.kill()
        one.started.process.wait()
    one.started.finish()
    ran = any(one.started.out.glob("rank_*.*"))
    stderr = one.started.printed("stderr")
    ended = verdicts.Ended(code, one.started.printed("stdout"), stderr, lines, place.held_locks(), ran, one.disturbed)
    shown = stderr if len(stderr) < 6000 else stderr[:3000] + "\n...\n" + stderr[-3000:]
    one.notes.append(f"exit {code}; stderr:\n{shown}")
    return verdicts.judge(one.launch, one.allowed, ended)
