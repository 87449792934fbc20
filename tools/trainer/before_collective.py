"""Measures the time before the collective: a rank's time for its data and gradients, before it waits for the others.

In data parallel all ranks wait for the slowest in the exchange of gradients, so their step times are alike.  This time
differs.  To measure it, a step runs as two programs (tools/trainer/steps.py).  That costs some time, so it is optional.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from tools.config import modes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VARIABLE = "LAUNCH_STRAGGLER"  # the launcher's --straggler: it looks for slow ranks


def is_measured(config: dict[str, Any], ranks: int, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether a job of `config` (filled) with `ranks` ranks takes this time."""
    return _is_wanted(config, environ) and not why_not(config, ranks)


def note(config: dict[str, Any], ranks: int, environ: Mapping[str, str] = os.environ) -> str:
    """The line for a job that was asked for this time and cannot take it; otherwise nothing."""
    reason = why_not(config, ranks) if _is_wanted(config, environ) else ""
    return tr("the lines have no time before the collective: {reason}", reason=reason) if reason else ""


def _is_wanted(config: dict[str, Any], environ: Mapping[str, str]) -> bool:
    return bool(config["train"]["time_before_collective"] or environ.get(VARIABLE))


def why_not(config: dict[str, Any], ranks: int) -> str:
    """Why a step cannot be cut where the ranks begin to wait for each other; nothing, if it can."""
    mode = config["parallel"]["mode"]
    if ranks == 1:
        return tr("one rank waits for no other")
    if mode in modes.BY_MINDSPORE:
        return tr("in mode {mode} MindSpore puts collectives between the layers", mode=mode)
    if config["model"]["name"] in modes.BY_HAND:
        return tr("{name} exchanges values between its layers", name=config["model"]["name"])
    if config["train"]["dataset_sink_mode"]:
        return tr("with train.dataset_sink_mode the device runs a whole epoch by itself; write False")
    return ""
