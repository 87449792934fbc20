"""preflight.sh without hosts in a pod of a job, and --preflight of run_pod.sh."""

from __future__ import annotations

import socket

from hccl_tools.common import typed
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import Refusal
from tools.preflight import check, document, reach
from tools.preflight.pods import meeting, place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.launch.planned import Plan
    from tools.preflight.pods.place import Place
    from tools.preflight.pods.result import Result
    from tools.preflight.words import Found

    Say = Callable[[str], None]


def run(
    job: check.Job,
    options: Sequence[str],
    table: str | None,
    wait: int | None,
    say: Say,
    tell: Callable[[Found], None],
    tell_line: Say,
) -> int:
    """The exit code, which is the same in all pods.  Raises Refusal.

    options: what all pods must have typed alike.  table: the rank table that was named.  tell: prints the whole.
    tell_line: prints what the other pods say instead.
    """
    with meeting.heeding_the_kubelet():
        here = _place(table, wait, say)
        if here.pods == 1 and here.number is not None:
            found = check.run(reach.over_ssh(reach.this_host(), {}, None, say), job)
            tell(found)
            return document.STATUS[document.verdict(found)]
        if here.is_hub:
            return document.STATUS[document.verdict(meeting.as_hub(here, job, options, say, tell))]
        result = meeting.as_spoke(here, job, options, say)
        tell_line(result.line)
        return document.STATUS[result.verdict]


def _place(table: str | None, wait: int | None, say: Say) -> Place:
    """That of this pod.  Raises Refusal, and says how a pod is looked at that does not know its job."""
    try:
        return place.of_environment(table, wait, say)
    except Refusal as refusal:
        alone = typed.command("scripts/preflight.sh", "-H", socket.gethostname())
        text = tr("to look at this pod alone: {command}", command=alone)
        raise Refusal(refusal.status, *refusal.lines, text) from refusal


def before(plan: Plan, job: check.Job, say: Say) -> Found | Result | None:
    """What the pods of a launch have found, the whole in the pod of rank 0; None: they do not meet.  Raises Refusal."""
    here = place.of_plan(plan)
    if here is None:
        return None
    if here.is_hub:
        return meeting.as_hub(here, job, (), say, lambda _found: None)
    return meeting.as_spoke(here, job, (), say)
