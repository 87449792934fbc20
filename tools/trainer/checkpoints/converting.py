"""Makes checkpoints for another number of ranks: merges the slices of parameters, and cuts them again."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import tempfile

from hccl_tools.common import how_far
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import count, one_line
from tools.config import modes
from tools.trainer.checkpoints import CheckpointError, choosing, labels, rank_folder, saving, strategies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Files = dict[int, tuple[str, labels.Label]]
    Made = dict[int, str]

_PART = "part_"


@contextlib.contextmanager
def whole(path: str) -> Iterator[str]:
    """A checkpoint file with the whole network: the file `path`, else what the folder `path` of a job merges to."""
    if not os.path.isdir(path):
        yield path
        return
    if any(name.endswith(".ckpt") for name in os.listdir(path)):
        text = tr(
            "{path} has checkpoints of one rank; name one of these files, or the folder in which "
            "rank_0, rank_1 ... are",
            path=one_line(path),
        )
        raise CheckpointError(text)
    with contextlib.ExitStack() as stack:
        try:
            work = stack.enter_context(tempfile.TemporaryDirectory(prefix=".merged."))
            file = for_ranks(path, 1, work)[0]
        except OSError as error:
            folder = one_line(error.filename or tempfile.gettempdir())
            text = tr(
                "{path} cannot be merged: {folder}: {reason}; make room there, or name another folder in TMPDIR",
                path=one_line(path),
                folder=folder,
                reason=strerror(error),
            )
            raise CheckpointError(text) from error
        yield file


def for_ranks(source: str, ranks: int, work: str) -> Made:
    """{rank: file} of the newest checkpoint in `source` for a job of `ranks` ranks; new files are in `work`.

    Puts the strategy file of the job to come, if it has one, into `work`.  Raises CheckpointError.
    """
    files = choosing.in_all_ranks(source)
    path, label = files[0]
    strategy = os.path.join(source, strategies.NAME)
    if label.ranks == ranks:
        if os.path.isfile(strategy):
            shutil.copy(strategy, os.path.join(work, strategies.NAME))
        return {rank: own for rank, (own, _) in files.items()}
    if label.model == modes.TENSOR_PARALLEL:
        return _cut_by_hand(files, strategy, ranks, work)
    if label.whole:
        return dict.fromkeys(range(ranks), path)
    if label.model == modes.STAGES_BY_HAND:
        return {0: _join_stages(files, ranks, work)}
    text = tr(
        "{path} has a slice of the network, which MindSpore cut in mode {mode}; merge it with "
        "python tools/convert_ckpt.py {source} NEW_FOLDER --src_strategy {strategy} --ranks {ranks}",
        path=one_line(path),
        mode=label.mode,
        source=one_line(source),
        strategy=one_line(strategies.beside(source)),
        ranks=ranks,
    )
    raise CheckpointError(text)


def by_strategies(source: str, work: str, src_strategy: str | None, dst_strategy: str | None) -> Made:
    """{rank: file in `work`} of the checkpoints in `source`, cut as one strategy file states, as the other states.

    None: not cut.  Of labelled checkpoints the newest is taken.  MindSpore converts where one number of ranks
    divides the other; otherwise the whole is between the two.  Raises CheckpointError.
    """
    before = strategies.ranks(src_strategy) if src_strategy else 1
    after = strategies.ranks(dst_strategy) if dst_strategy else 1
    folder = _linked(source, before, work)
    first = saving.read(_first_file(folder))
    shapes = {name: tuple(parameter.shape) for name, parameter in first.items()}
    strategies.check(shapes, source, src_strategy, dst_strategy)
    if before % after and after % before:
        folder = _transform(source, folder, os.path.join(work, "whole"), src_strategy, None)
        src_strategy = None
    made = _transform(source, folder, os.path.join(work, "made"), src_strategy, dst_strategy)
    return {rank: os.path.join(rank_folder(made, rank), f"{_PART}{rank}.ckpt") for rank in range(after)}


def _linked(source: str, ranks: int, work: str) -> str:
    """A folder with one checkpoint of each rank: of several, MindSpore would take the last by name."""
    if not _is_labelled(source):
        return source
    files = choosing.in_all_ranks(source)
    if len(files) != ranks:
        text = tr(
            "{source} has the checkpoints of {files} ranks, and the strategy file of the job "
            "that saved is for {ranks}; name the right one with --src_strategy",
            source=one_line(source),
            files=len(files),
            ranks=ranks,
        )
        raise CheckpointError(text)
    folder = os.path.join(work, "source")
    for rank, (path, _) in files.items():
        os.makedirs(rank_folder(folder, rank))
        os.symlink(os.path.abspath(path), os.path.join(rank_folder(folder, rank), os.path.basename(path)))
    return folder


def newest(source: str) -> tuple[str, labels.Label] | None:
    """(path, Label) of rank 0's newest checkpoint in `source`; None where another trainer saved there."""
    return choosing.in_all_ranks(source)[0] if _is_labelled(source) else None


def _is_labelled(source: str) -> bool:
    return any(labels.read(path) for path in glob.glob(os.path.join(glob.escape(source), "rank_[0-9]*")))


def _first_file(folder: str) -> str:
    """The checkpoint of rank 0 that MindSpore takes.  Raises CheckpointError."""
    files = glob.glob(os.path.join(glob.escape(rank_folder(folder, 0)), "*.ckpt"))
    if not files:
        text = tr(
            "{folder} has no rank_0 with a .ckpt file; name the folder in which rank_0, rank_1 "
            "... are, and bring those of other hosts there",
            folder=one_line(folder),
        )
        raise CheckpointError(text)
    return max(files)


def _cut_by_hand(files: Files, strategy: str, ranks: int, work: str) -> Made:
    new = os.path.join(work, strategies.NAME)
    strategies.write_for(ranks, strategy, new)
    return by_strategies(
        os.path.dirname(strategy), work, strategy if len(files) > 1 else None, new if ranks > 1 else None
    )


def _join_stages(files: Files, ranks: int, work: str) -> str:
    """One checkpoint with the parameters of all stages, which have different ones."""
    import mindspore as ms

    if ranks != 1:
        raise CheckpointError(tr("stages cut by hand can be joined into one checkpoint only; write --ranks 1"))
    joined = {}
    with how_far.doing(tr("reading the checkpoints of {stages}", stages=count(len(files), "stage")), len(files)):
        for path, _ in files.values():
            joined.update(saving.read(path))
            how_far.more()
    path = os.path.join(work, "joined.ckpt")
    ms.save_checkpoint([{"name": name, "data": parameter} for name, parameter in joined.items()], path)
    return path


def _transform(source: str, folder: str, made: str, src_strategy: str | None, dst_strategy: str | None) -> str:
    """Calls mindspore.transform_checkpoints, with its refusals as CheckpointError; returns `made`."""
    import mindspore as ms

    parts = os.path.join(glob.escape(made), "rank_*", f"{_PART}*.ckpt")
    ranks = strategies.ranks(dst_strategy) if dst_strategy else 1
    try:
        with how_far.doing(tr("converting the checkpoints for {ranks}", ranks=count(ranks, "rank")), ranks) as work:
            work.counter = lambda: len(glob.glob(parts))  # MindSpore does not tell
            ms.transform_checkpoints(folder, made, _PART, src_strategy, dst_strategy)
    except (ValueError, TypeError, RuntimeError, NotADirectoryError) as error:
        reason = one_line(str(error).strip().partition("\n")[0])
        text = tr("MindSpore cannot convert {source}: {reason}", source=one_line(source), reason=reason)
        raise CheckpointError(text) from error
    return made
