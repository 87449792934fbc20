"""Checkpoints: each rank knows which are complete, and all ranks continue from the same one.

    ckpt/rank_0/newest_run.json     the run begun last in this folder
    ckpt/strategy.json              how layers cut by hand are cut, in MindSpore's format; none otherwise
    ckpt/rank_0/lenet5-3_22.ckpt    after epoch 3, step 22 of it, as MindSpore names them
    ckpt/rank_0/lenet5-3_22.json    its label: its content, its size and its checksum; written last
    ckpt/strategy/rank_0.ckpt       how MindSpore cut the network (semi-auto, auto)

A checkpoint and its label are written under another name and renamed, the label when the checkpoint is on the disk.  A
checkpoint without a label that fits it was cut off when the job ended; it is skipped.  A job continues from the newest
checkpoint that every one of its ranks has.  The ranks ask each other, since their folders may be on different hosts.

Nothing in this file imports MindSpore: the launch plan asks `problems` before any rank starts.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.problem import Problem
from hccl_tools.common.words import one_line
from tools.config.unusable import Unusable


class CheckpointError(Unusable):
    """A checkpoint cannot be used: the text names it, states why, and what to do."""


def folder_of(config: dict) -> str:
    """The folder of this run's checkpoints: train.ckpt_save_dir, otherwise ckpt in the run's log folder."""
    return config["train"].get("ckpt_save_dir") or os.path.join(os.environ.get("LOG_DIR", "."), "ckpt")


def rank_folder(folder: str, rank: int) -> str:
    """The folder for the checkpoints of rank `rank` under `folder`."""
    return os.path.join(folder, f"rank_{rank}")


def earlier_sizes() -> list[int]:
    """How many ranks the earlier attempts of this job had, after the loss of a host; otherwise empty.

    The launcher says so in RESUME_RANK_SIZES (tools/launch/hosts/elastic.py), such as "6,4".  Raises CheckpointError.
    """
    text = os.environ.get("RESUME_RANK_SIZES", "")
    sizes = [whole_number(word, 1) for word in text.split(",")] if text and os.environ.get("RESUME") == "1" else []
    if None in sizes:
        message = tr(
            "RESUME_RANK_SIZES {text} is not a list of numbers of ranks, such as 6,4; do not set it yourself",
            text=one_line(text),
        )
        raise CheckpointError(message)
    return [size for size in sizes if size is not None]


def problems(config: dict) -> list[Problem]:
    """Problems of the checkpoints that `config` (with all defaults) names."""
    found = []
    for part, key, is_there, kind in (
        ("train", "pretrained", os.path.isfile, tr("file")),
        ("train", "resume_from", os.path.isdir, tr("folder")),
        ("parallel", "strategy_ckpt_load_file", os.path.isfile, tr("file")),
    ):
        path = config.get(part, {}).get(key)
        if path is not None and not is_there(path):
            what = tr("no such {kind}", kind=kind) if not os.path.exists(path) else tr("is not a {kind}", kind=kind)
            remedy = tr("name a {kind}; a relative path counts from {folder}", kind=kind, folder=one_line(os.getcwd()))
            found.append(Problem("no-checkpoint", f"/{part}/{key}", f"{path}: {what}", remedy))
    return found
