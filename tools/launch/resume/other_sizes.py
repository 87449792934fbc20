"""Finds the checkpoints for a restart of our trainer with another number of ranks, after a host was lost.

A checkpoint of a whole network suits every rank: the trainer takes it by itself
(tools/trainer/checkpoints/choosing.py). Layers that were cut by hand are merged and cut again, if all slices can be
seen from here.
"""

from __future__ import annotations

import os

from hccl_tools.common import project
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import count, one_line
from tools.config import modes
from tools.config.unusable import Unusable
from tools.launch import latest_link
from tools.launch.planned import Plan
from tools.launch.programs import trainer_command
from tools.launch.resume.resuming import Resumption
from tools.trainer.checkpoints import choosing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.trainer.checkpoints.labels import Label

_CONVERTED = "resumed"  # in the folder of an attempt: checkpoints that were made for its number of ranks


def checkpoints(plan: Plan, document: dict[str, Any], before: int) -> tuple[Plan, list[str]]:
    """(the plan of a restart, that names other checkpoints if it must; what to know); before: the ranks until now.

    document: launch.json.  Raises Refusal.
    """
    numbers = {"now": count(len(plan.ranks), "rank"), "before": count(before, "rank")}
    if not plan.checkpoints:
        note = tr(
            "note: the trainer must continue with {now} from what {before} saved; RESUME_RANK_SIZES has these numbers",
            **numbers,
        )
        return plan, [note]
    note = tr("note: a step now has the samples of {now}, not of {before}; the learning rate is unchanged", **numbers)
    try:
        source, label = _newest(plan, document)
        if label is None or label.whole or label.ranks == len(plan.ranks):
            return plan, [note]
        return _cut_anew(plan, source, label), []  # ranks that share a network see the same samples
    except Unusable as error:
        raise Refusal(REFUSED, *error.lines) from error


def _newest(plan: Plan, document: dict[str, Any]) -> tuple[str, Label | None]:
    """(folder, newest label in it): where the job saves, else what it has gone on from; None: it has saved nothing."""
    saved = str((plan.checkpoints or {})["folder"])
    resumed = document.get("resumed")
    from_there = [str(resumed["folder"])] if isinstance(resumed, dict) else []
    for folder in (saved, *from_there):
        label = choosing.newest_label(folder)
        if label:
            return folder, label
    return saved, None


def _cut_anew(plan: Plan, source: str, label: Label) -> Plan:
    """The plan with checkpoints for its number of ranks, made of slices.  Raises Refusal and CheckpointError."""
    if label.mode in modes.BY_MINDSPORE:
        raise refused(
            "{source} has slices that MindSpore cut in mode {mode} for {ranks}; with train.integrated_save True "
            "each rank saves the whole network, and a job goes on without a lost host",
            source=one_line(latest_link.shown(source)),
            mode=label.mode,
            ranks=count(label.ranks, "rank"),
        )
    files = choosing.in_all_ranks(source)
    folder = os.path.join(plan.run_dir, f"restart_{plan.request.attempt}", _CONVERTED)
    command = [trainer_command.python(), project.path("tools", "convert_ckpt.py"), source, folder]
    resumed = Resumption(
        run=plan.run_dir,
        source=source,
        folder=folder,
        convert=[*command, "--ranks", str(len(plan.ranks))],
        candidates=[files[0]],
    )
    words = [
        trainer_command.with_setting(command, resumed.setting()) for command in (plan.trainer, plan.restart) if command
    ]
    return plan.replace(resumed=resumed, trainer=words[0], restart=words[1] if plan.restart else [])
