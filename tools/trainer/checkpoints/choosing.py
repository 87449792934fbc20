"""Chooses the checkpoint from which a job continues: the newest that is complete on all of its ranks."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection
from itertools import islice

from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.words import named, one_line, short
from tools.trainer.checkpoints import CheckpointError, labels, rank_folder
from tools.trainer.checkpoints.labels import Label, Point

Points = list[Point]

# How many checkpoints of each rank the ranks tell each other of: more than a rank could be ahead.
GATHERED = 8

# After the loss of a host a rank looks into the folders of so many ranks.  More are on a disk that the hosts share:
# there its own folder is as good as any.
_NEIGHBOURS = 64


def newest_first(folder: str, limit: int | None = None) -> list[tuple[str, Label]]:
    """[(path, Label)] of the whole checkpoints in `folder` of the run begun last, at most `limit`."""
    found = _of_newest_run(folder)
    found.sort(key=lambda item: item[1].point, reverse=True)
    return [(path, label) for path, label in found if labels.is_whole(path, label)][:limit]


def choose(
    folder: str,
    rank: int,
    ranks: int,
    model: str,
    gather: Callable[[Points], list[Points]] | None = None,
    earlier: Collection[int] = (),
) -> tuple[str, Label] | None:
    """(path, Label) of the checkpoint from which rank `rank` of `ranks` goes on, or None: from the start.

    `gather` gives the lists of points of all ranks, the same on every rank.  earlier: the job has lost a host and had
    these numbers of ranks before; then a whole network of such an attempt will do, whichever rank has saved it.
    Raises CheckpointError when there are checkpoints, but of another model or another number of ranks.
    """
    own = _seen_by(folder, rank) if earlier else newest_first(rank_folder(folder, rank), GATHERED)
    known = [(path, label) for path, label in own if label.model == model]
    fitting = [
        (path, label) for path, label in known if label.ranks == ranks or (label.whole and label.ranks in earlier)
    ]
    if own and not fitting and not (known and earlier):
        raise _of_another_job(*own[0], folder, ranks, model)
    points = [label.point for _, label in fitting]
    everyone = gather(points) if gather else []
    common = set(points).intersection(*everyone)
    if earlier and not common and any(everyone):
        raise _not_on_all(folder, everyone)
    return next(((path, label) for path, label in fitting if label.point in common), None)


def _seen_by(folder: str, rank: int) -> list[tuple[str, Label]]:
    """[(path, Label)], newest first, of the whole checkpoints on this host, a rank's own before those of others.

    On a disk of its own a host has the folders of the ranks that it had before.
    """
    own = rank_folder(folder, rank)
    found = grouped(
        (item[1].point, item)
        for path in [own, *(path for path in _neighbours(folder) if path != own)]
        for item in _of_newest_run(path)
    )
    newest = sorted(found, reverse=True)[:GATHERED]
    one_each = (next((item for item in found[point] if labels.is_whole(*item)), None) for point in newest)
    return [item for item in one_each if item]


def _neighbours(folder: str) -> list[str]:
    """The folders of all ranks in `folder`; none if they are many.  No more names are read than that takes."""
    try:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in islice(entries, _NEIGHBOURS + 8) if entry.name.startswith("rank_")]
    except OSError:
        return []
    return sorted(found) if len(found) <= _NEIGHBOURS else []


def _not_on_all(folder: str, everyone: list[Points]) -> CheckpointError:
    without = [rank for rank, points in enumerate(everyone) if not points]
    lacking = without or range(len(everyone))
    text = tr(
        "{folder}: a host is lost, and no checkpoint is on all the other hosts: {ranks} cannot continue; save "
        "where all hosts see it: set train.ckpt_save_dir to a folder that they share",
        folder=one_line(folder),
        ranks=named("rank", lacking),
    )
    return CheckpointError(text)


def _of_another_job(path: str, label: Label, folder: str, ranks: int, model: str) -> CheckpointError:
    if label.model != model:
        return of_another_network(path, label, model)
    text = tr(
        "{path} comes from a job of {ranks} ranks, but this job has {wanted}; make checkpoints for {wanted} with "
        "python tools/convert_ckpt.py {folder} NEW_FOLDER --ranks {wanted} and continue from there with -o "
        "train.resume_from=NEW_FOLDER",
        path=one_line(path),
        ranks=label.ranks,
        wanted=ranks,
        folder=one_line(folder),
    )
    return CheckpointError(text)


def of_another_network(path: str, label: Label, model: str) -> CheckpointError:
    """The refusal of a checkpoint, or of a folder of them, for a config whose network is `model`."""
    text = tr(
        "{path} is for the network {model}, but this config has {wanted}; name the folder of this network's "
        "checkpoints with --resume, train.resume_from or train.ckpt_save_dir",
        path=one_line(path),
        model=short(label.model),
        wanted=model,
    )
    return CheckpointError(text)


# ---- without a job, for the launch plan ----------------------------------------------------------


def any_labelled(folder: str) -> bool:
    """Whether some rank has a checkpoint with a label in `folder`."""
    return any(labels.read(path) for path in _rank_folders(folder).values())


def newest_label(folder: str) -> Label | None:
    """The label of the newest checkpoint in `folder`, from any rank, complete or not."""
    found = [label for path in _rank_folders(folder).values() for _, label in _of_newest_run(path)]
    return max(found, key=lambda label: label.point, default=None)


def whole_on(folder: str, ranks: list[int], world: int) -> tuple[list[tuple[str, Label]], list[str]]:
    """([(path, Label)] of the first of `ranks`, newest first, and the files that are damaged and newer).

    All `ranks` of a job of `world` ranks have labels of those; the first of them is whole on all.  Only that one is
    read as a whole: the files may be large.
    """
    own = [
        {
            label.point: (path, label)
            for path, label in _of_newest_run(rank_folder(folder, rank))
            if label.ranks == world
        }
        for rank in ranks
    ]
    common = sorted(set(own[0]).intersection(*own[1:]), reverse=True) if own else []
    torn: list[str] = []
    for place, point in enumerate(common):
        bad = [path for path, label in (files[point] for files in own) if not labels.is_whole(path, label)]
        if not bad:
            return [own[0][point] for point in common[place:][:GATHERED]], torn
        torn += bad
    return [], torn


def _of_newest_run(folder: str) -> list[tuple[str, Label]]:
    """[(path, Label)] of the checkpoints in a rank's folder of the run begun last, whole or not."""
    run = labels.newest_run(folder)
    return [(path, label) for path, label in labels.read(folder).items() if run in (None, label.run)]


def _rank_folders(folder: str) -> dict[int, str]:
    """{rank: its folder} in `folder`, in the order of the ranks."""
    found = {}
    for path in glob.glob(os.path.join(glob.escape(folder), "rank_*")):
        rank = whole_number(os.path.basename(path)[len("rank_") :])
        if rank is not None:
            found[rank] = path
    return dict(sorted(found.items()))


def in_all_ranks(folder: str) -> dict[int, tuple[str, Label]]:
    """{rank: (path, Label)}, from rank 0 on: the newest checkpoint that is whole on all ranks of its job.

    For a folder that has every rank's.  Raises CheckpointError when there is none.
    """
    own = {rank: newest_first(path) for rank, path in _rank_folders(folder).items()}
    points = {label.point for found in own.values() for _, label in found}
    for point in sorted(points, reverse=True):
        files = {rank: item for rank, found in sorted(own.items()) for item in found if item[1].point == point}
        if set(files) == set(range(len(files))) and len(files) == next(iter(files.values()))[1].ranks:
            return files
    text = tr(
        "{folder} has no checkpoint of tools/train.py that is whole on all ranks; name the "
        "folder in which rank_0, rank_1 ... are, and bring those of other hosts there",
        folder=one_line(folder),
    )
    raise CheckpointError(text)
