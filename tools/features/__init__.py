"""What a launch does besides starting and supervising: each feature is one file, and one row of `TABLE`.

The launcher knows none of them by name.  At each step of a job's life it calls the method of that name of those that
the launch has, in the order of the table: see base.py for the steps.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tools.features.base import Feature
    from tools.launch.run import Run
    from tools.supervise.events import Heard
    from tools.supervise.members import Member


def _any(run: Run) -> bool:
    return True


def _may_start_ranks(run: Run) -> bool:
    """A program of several ranks, whose processes we see."""
    return bool(run.command.program) and not run.engine.name and len(run.plan.ranks) > 1


# (file and class, whether a launch has it).  Only those are imported, and before the ranks start: a Python environment
# that is removed while the job runs changes nothing.
TABLE: tuple[tuple[str, str, Callable[[Run], bool]], ...] = (
    ("saving", "Saving", _any),
    ("restarts", "Restarts", lambda run: run.settings.max_restarts > 0),
    ("hosts_attempts", "HostsAttempts", lambda run: run.plan.agreement is not None and not run.settings.keep_going),
    ("pod_table", "PodTable", lambda run: run.plan.watched_table is not None),
    (
        "elastic_restarts",
        "ElasticRestarts",
        lambda run: bool(run.plan.hosts and run.engine.name and run.settings.max_restarts),
    ),
    ("screen", "Screen", lambda run: run.settings.console != "none"),
    ("hang_stacks", "HangStacks", lambda run: bool(run.settings.hang_timeout)),
    ("plog_watch", "PlogWatch", lambda run: run.plan.plogs is not None),
    ("metrics", "Metrics", lambda run: bool(run.settings.straggler or run.settings.metrics)),
    ("together", "Together", lambda run: run.settings.watch and len(run.plan.ranks) > 1),
    ("nested_launchers", "NestedLaunchers", _may_start_ranks),
    ("import_once", "ImportOnce", lambda run: run.plan.imports is not None and bool(run.engine.name)),
    ("healing", "Healing", lambda run: run.engine.name == "msrun"),
    ("first_failure", "FirstFailure", _any),
    ("last_good_hosts", "LastGoodHosts", lambda run: run.plan.preflight is not None),
    ("latest_log", "LatestLog", _any),
    ("explanation", "Explanation", _any),
)


class Hooks:
    """The features of one launch."""

    def __init__(self, run: Run) -> None:
        self._run = run
        wanted = [(file, kind) for file, kind, has in TABLE if has(run)]
        self._features: list[Feature] = [
            getattr(import_module(f"tools.features.{file}"), kind)(run) for file, kind in wanted
        ]

    def _call(self, step: str, *values: Any) -> None:
        for feature in self._features:
            getattr(feature, step)(*values)

    def _any(self, step: str, *values: Any) -> Any:
        """The first answer that is not false."""
        return next((answer for feature in self._features if (answer := getattr(feature, step)(*values))), None)

    # ---- steps of the supervisor -------------------------------------------------------------------------------------

    def failed(self, member: Member, goes_on: bool) -> None:
        self._call("failed", member, goes_on)

    def hangs(self) -> None:
        self._call("hangs")

    def handed(self) -> None:
        self._call("handed")

    def healed(self, member: Member) -> None:
        self._call("healed", member)

    def ending(self, asks: bool) -> None:
        self._call("ending", asks)

    def stops(self) -> None:
        self._call("stops")

    def check(self) -> None:
        self._call("check")

    def heard(self, event: Heard) -> None:
        self._call("heard", event)

    # ---- steps of the run --------------------------------------------------------------------------------------------

    def opened(self) -> None:
        self._call("opened")

    def is_ready(self) -> bool:
        return all(feature.is_ready() for feature in self._features)

    def begins(self) -> None:
        self._call("begins")

    def attempt_ended(self) -> None:
        self._call("attempt_ended")

    def wants_restart(self, number: int) -> bool:
        return all(feature.wants_restart(number) for feature in self._features)

    def may_restart(self, number: int) -> bool:
        return all(feature.may_restart(number) for feature in self._features)

    def again(self, number: int) -> None:
        self._call("again", number)

    def next_plan(self) -> None:
        self._call("next_plan")

    def logs_moved(self, old: str) -> None:
        self._call("logs_moved", old)

    def finishing(self) -> None:
        self._call("finishing")

    def settle(self, status: int) -> None:
        self._call("settle", status)

    def fell_silent(self) -> None:
        self._call("fell_silent")

    def outcome(self, outcome: dict[str, Any]) -> None:
        self._call("outcome", outcome)

    def reported(self, trouble: str) -> None:
        self._call("reported", trouble)

    # ---- what other hosts say ----------------------------------------------------------------------------------------

    def others_status(self) -> int:
        return self._any("others_status") or 0

    def others_host(self) -> str:
        return self._any("others_host") or ""

    def others_end(self) -> bool:
        return bool(self._any("others_end"))

    def others_again(self) -> bool:
        return bool(self._any("others_again"))

    def how_far(self) -> tuple[int, int, int, str]:
        """See Feature.how_far."""
        return self._any("how_far") or (0, 0, 0, "")

    def in_vain(self) -> int:
        """How many restarts in a row did not help, with that of the attempt that has ended."""
        return self._any("in_vain") or 0

    def why_not_ready(self) -> str:
        """Why the next attempt does not begin on this host."""
        return self._any("why_not_ready") or ""

    def lost_ranks(self) -> set[int]:
        return self._any("lost_ranks") or set()

    def look_for_lost_host(self) -> str:
        """The host that the engine has lost, as the plan names it."""
        return self._any("look_for_lost_host") or ""

    def what_failed(self) -> str:
        """Which member has failed first, and how."""
        return self._any("what_failed") or ""
