"""The steps of a remedy, and which of them suit a launch: a run on CPU does not need npu-smi."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_BETWEEN = re.compile(r"(?:; |；)(?![^(（]*[)）])")  # but not within brackets
_TOOLS: Mapping[str, re.Pattern[str]] = {  # programs and folders that only hosts with such devices have
    "Ascend": re.compile(r"\b(?:npu-smi|hccn_tool|ascend-dmi|msnpureport)\b|/usr/local/Ascend\b|\bplogs?\b"),
    "GPU": re.compile(r"\bnvidia-[a-z]+\b"),
}


def steps(remedy: str) -> list[str]:
    """Its steps, in order."""
    return _BETWEEN.split(remedy)


def steps_for(remedy: str, target: object) -> list[str]:
    """The steps that a launch for this device target can do; all of them, if the target is unknown.

    A step that names tools of several targets holds for each of these.  Where all steps are for other hardware, the
    failure is of that hardware, too: they stay, but for a CPU, which has no tools of its own.
    """
    found = steps(remedy)
    if target not in ("Ascend", "GPU", "CPU"):
        return found
    fitting = [step for step in found if target in (named := _named(step)) or not named]
    return fitting or (found if target != "CPU" else [])


def for_target(remedy: str, target: object) -> str:
    """The same as one text; empty, where no step is left."""
    return ("；" if "；" in remedy else "; ").join(steps_for(remedy, target))


def _named(step: str) -> list[str]:
    """The targets whose tools the step names."""
    return [target for target, tools in _TOOLS.items() if tools.search(step)]
