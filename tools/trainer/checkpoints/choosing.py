"""Chooses the checkpoint from which a job goes on: the newest that is whole on all of its ranks."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable

from hccl_tools.common.numbers import whole_number
from hccl_tools.common.words import one_line, short
from tools.trainer.checkpoints import CheckpointError, labels, rank_folder
from tools.trainer.checkpoints.labels import Label, Point

Points = list[Point]

# How many checkpoints of each rank the ranks tell each other of: more than a rank could be ahead.
GATHERED = 8


def newest_first(folder: str, limit: int | None = None) -> list[tuple[str, Label]]:
    """[(path, Label)] of the whole checkpoints in `folder` of the run begun last, at most `limit`."""
    run = labels.newest_run(folder)
    found = [(path, label) for path, label in labels.read(folder).items() if run in (None, label.run)]
    found.sort(key=lambda item: item[1].point, reverse=True)
    return [(path, label) for path, label in found if labels.is_whole(path, label)][:limit]


def choose(
    folder: str, rank: int, ranks: int, model: str, gather: Callable[[Points], list[Points]] | None = None
) -> tuple[str, Label] | None:
    """(path, Label) of the checkpoint from which rank `rank` of `ranks` goes on, or None: from the start.

    `gather` gives the lists of points of all ranks, the same on every rank.  Raises CheckpointError when
    there are checkpoints, but of another model or another number of ranks.
    """
    own = newest_first(rank_folder(folder, rank), GATHERED)
    fitting = [(path, label) for path, label in own if label.model == model and label.ranks == ranks]
    if own and not fitting:
        raise _of_another_job(*own[0], folder, ranks, model)
    points = [label.point for _, label in fitting]
    common = set(points).intersection(*(gather(points) if gather else []))
    return next(((path, label) for path, label in fitting if label.point in common), None)


def _of_another_job(path: str, label: Label, folder: str, ranks: int, model: str) -> CheckpointError:
    if label.model != model:
        return CheckpointError(
            f"{one_line(path)} is of the network {short(label.model)}, this config's is {model}; name the folder of "
            "this network's checkpoints with train.resume_from or train.ckpt_save_dir"
        )
    return CheckpointError(
        f"{one_line(path)} is of a job of {label.ranks} ranks, this one has {ranks}; make checkpoints for {ranks} with "
        f"python tools/convert_ckpt.py {one_line(folder)} NEW_FOLDER --ranks {ranks} and continue from there with "
        "-o train.resume_from=NEW_FOLDER"
    )


def in_all_ranks(folder: str) -> dict[int, tuple[str, Label]]:
    """{rank: (path, Label)}, from rank 0 on: the newest checkpoint that is whole on all ranks of its job.

    For a folder that has every rank's.  Raises CheckpointError when there is none.
    """
    own = {}
    for path in glob.glob(os.path.join(glob.escape(folder), "rank_*")):
        rank = whole_number(os.path.basename(path)[len("rank_") :])
        if rank is not None:
            own[rank] = newest_first(path)
    points = {label.point for found in own.values() for _, label in found}
    for point in sorted(points, reverse=True):
        files = {rank: item for rank, found in sorted(own.items()) for item in found if item[1].point == point}
        if set(files) == set(range(len(files))) and len(files) == next(iter(files.values()))[1].ranks:
            return files
    raise CheckpointError(
        f"{one_line(folder)} has no checkpoint of tools/train.py that is whole on all ranks; name the folder in which "
        "rank_0, rank_1 ... are, and bring those of other hosts there"
    )
