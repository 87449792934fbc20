"""Features of a launch besides starting and supervising ranks: each is one file, and one row of `TABLE`.

The launcher does not know them by name.  At each step of a job's life it calls the method of that name on the launch's
features, in the order of the table. base.py has the steps.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from tools.features.base import Feature
    from tools.launch.run import Run

    Steps = Feature  # for the types of the steps
else:
    Steps = object


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


class Hooks(Steps):
    """The features of one launch, behind one object that has the same steps: see base.py.

    A step is done by all of them; where steps answer, the first answer that is not false counts.
    """

    def __init__(self, run: Run) -> None:
        wanted = [(file, kind) for file, kind, has in TABLE if has(run)]
        self._features: list[Feature] = [
            getattr(import_module(f"tools.features.{file}"), kind)(run) for file, kind in wanted
        ]

    def __getattr__(self, step: str) -> Callable[..., Any]:
        def in_turn(*values: Any) -> Any:
            answer = None
            for feature in self._features:
                answer = getattr(feature, step)(*values)
                if answer:
                    break
            return answer

        return in_turn

    # ---- all features must agree -------------------------------------------------------------------------------------

    def is_ready(self) -> bool:
        return all(feature.is_ready() for feature in self._features)

    def wants_restart(self, number: int) -> bool:
        return all(feature.wants_restart(number) for feature in self._features)

    def may_restart(self, number: int) -> bool:
        return all(feature.may_restart(number) for feature in self._features)
