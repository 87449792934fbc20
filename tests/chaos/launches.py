"""Draws what is started: script, options, what the ranks do, and where the output goes."""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass, field
from random import Random

ENDLESS = None  # the natural end of a rank that waits for a signal


@dataclass(frozen=True)
class Rank:
    """What a rank does, and how it ends if nobody disturbs it: with one of `codes`, or never."""

    actions: str
    code: int | None = 0
    code_again: int | None = 0  # after a restart


@dataclass
class Launch:
    """One launch."""

    script: str
    ranks: list[Rank]
    options: list[str] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    target: str = "CPU"
    log_dir: str = "logs"
    restarts: int = 0
    limits: tuple[str, ...] = ()  # of timeout, hang
    quiet: bool = False
    stdout: str = "pipe"
    stderr: str = "pipe"
    imports: str = ""  # CHAOS_IMPORT, with --import_once

    def do(self) -> str:
        """CHAOS_DO of this launch."""
        return "; ".join(f"{number}: {rank.actions}" for number, rank in enumerate(self.ranks))

    def words(self, rank_program: str) -> list[str]:
        """The words after the script."""
        target = ["--no_check"] if self.target == "Ascend" else []
        if self.script != "run_cpu.sh" and not target:
            target = ["--device_target", "CPU"]
        table = [] if self.script in ("run_cpu.sh", "run_cluster.sh", "run_mpirun.sh") else ["--hccn_conf", "hccn.conf"]
        own = ["--train_script", rank_program, f"--log_dir={self.log_dir}", "--grace", "1"]
        return [*target, *table, *own, *self.options, *self.arguments]

    def is_endless(self) -> bool:
        """Whether nothing but a signal or a limit ends it: no rank fails, and one waits."""
        codes = [rank.code for rank in self.ranks]
        return ENDLESS in codes and not any(codes)

    def codes(self, disturbed: bool) -> set[int]:
        """The exit codes that it may have if nobody disturbs it, or somebody does; none if nothing would end it."""
        codes = self._attempt([rank.code for rank in self.ranks])
        if self.restarts and (disturbed or (0 not in codes and codes)):
            again = self._attempt([rank.code_again for rank in self.ranks])
            codes = codes | again if disturbed else again
        return codes | ({124} if self.limits else set())

    @staticmethod
    def _attempt(codes: list[int | None]) -> set[int]:
        failed = {code for code in codes if code}
        return failed or ({0} if ENDLESS not in codes else set())


SCRIPTS = {  # script -> (how often, its ranks)
    "ascend2p.sh": (8, (2,)),
    "ascend4p.sh": (5, (4,)),
    "ascend8p.sh": (2, (8,)),
    "run.sh": (2, (2, 4)),
    "run_cpu.sh": (1, (1,)),
    "run_cluster.sh": (2, (2, 3)),
    "run_mpirun.sh": (1, (2, 3)),
}
# The last is longer than a file name usually is, and all of them are possible.
LOG_DIRS = ["logs", "a b", "-logs", "$(touch evil)", 'it\'s "odd"', "日志", "*", "deep/er/logs", "x" * 120]
STREAMS = {"pipe": 10, "file": 4, "closed": 1, "full": 1, "gone": 1, "stalled": 1}
EXITS = [1, 1, 2, 3, 7, 42, 78, 124, 126, 127, 129, 130, 137, 139, 143, 254, 255]
SIGNALS = ["KILL", "SEGV", "ABRT", "TERM", "BUS", "FPE", "HUP", "USR1", "PIPE", "ALRM"]


def draw(random: Random) -> Launch:
    """A launch, with all that belongs to it."""
    script = _weighted(random, {name: often for name, (often, _) in SCRIPTS.items()})
    waits = random.random() < 0.5  # for what ranks leave: then that may not last
    launch = Launch(script, [_rank(random, 1.5 if waits else 60) for _ in range(random.choice(SCRIPTS[script][1]))])
    launch.options += [] if waits else ["--leftovers", "end"]
    if script.startswith("ascend") and random.random() < 0.4:
        launch.target = "Ascend"  # devices, that are locked
    launch.log_dir = random.choice(LOG_DIRS) if random.random() < 0.4 else "logs"
    launch.arguments = _arguments(launch)
    launch.quiet = random.random() < 0.15
    launch.options += ["--quiet"] if launch.quiet else []
    launch.options += random.choice([[], [], ["--console", "all"], ["--console", "none"]])
    launch.stdout = _weighted(random, STREAMS)
    launch.stderr = _weighted(random, {"pipe": 20, "file": 6, "closed": 1, "full": 1})
    _draw_limits(random, launch)
    return launch


def lacks(launch: Launch) -> str:
    """Why this machine cannot start the launch; empty if it can."""
    return "run_mpirun.sh: needs mpirun" if launch.script == "run_mpirun.sh" and not shutil.which("mpirun") else ""


def _arguments(launch: Launch) -> list[str]:
    count = str(len(launch.ranks))
    if launch.script == "run.sh":
        return ["--config", "config.yaml", "data", count]
    if launch.script == "run_cluster.sh":
        return ["--config", "config.yaml", "data", f"tables/{count}.json", count, "0"]
    if launch.script == "run_mpirun.sh":
        return ["-n", count, "config.yaml"]
    return ["config.yaml"]


def _draw_limits(random: Random, launch: Launch) -> None:
    limits = []
    if random.random() < (0.4 if launch.is_endless() else 0.1):
        limits.append("timeout")
        launch.options += ["--timeout", str(random.choice([1, 2]))]
    if random.random() < (0.2 if launch.is_endless() else 0.05):
        limits.append("hang")
        launch.options += ["--hang_timeout", "1"]
    again = [rank.code_again for rank in launch.ranks]
    if not launch.is_endless() and (any(again) or ENDLESS not in again) and random.random() < 0.1:
        launch.restarts = 1
        launch.options += ["--max_restarts", "1"]
    launch.limits = tuple(limits)


def _rank(random: Random, left: float) -> Rank:
    """Half of the ranks succeed, most of the others fail, a few never end; a child of theirs lasts `left` seconds."""
    pause = f"sleep {random.choice([0, 0.1, 0.2, 0.4, 0.8])}"
    before = ", ".join(_before(random, left))
    kind = _weighted(random, {"succeed": 10, "exit": 3, "kill": 2, "wait": 2, "deaf": 1, "stop": 1})
    once = "once " if random.random() < 0.3 else ""
    if kind == "succeed":
        return Rank(f"{before}, {pause}")
    if kind == "exit":
        code = random.choice(EXITS)
        return Rank(f"{before}, {pause}, {once}exit {code}", code, 0 if once else code)
    if kind == "kill":
        name = random.choice(SIGNALS)
        code = 128 + getattr(signal, "SIG" + name)
        return Rank(f"{before}, {pause}, {once}kill {name}", code, 0 if once else code)
    actions = {"wait": "wait", "deaf": "ignore TERM INT HUP QUIT USR1, wait", "stop": "stop, wait"}[kind]
    return Rank(f"{before}, {actions}", ENDLESS, ENDLESS)


def _before(random: Random, left: float) -> list[str]:
    """What a rank does first."""
    actions = []
    if random.random() < 0.3:
        kind = random.choice(["lines", "bar", "binary", "line"])
        actions.append(f"write {kind} {random.choice([10, 1000, 70000, 400000])}")
    if random.random() < 0.15:
        actions.append(f"fork {random.choice(['group', 'session', 'daemon'])} {left}")
    if random.random() < 0.05:
        actions.append("litter")
    if random.random() < 0.05:
        actions.append("close")
    return actions


def _weighted(random: Random, weights: dict[str, int]) -> str:
    return random.choices(list(weights), list(weights.values()))[0]
