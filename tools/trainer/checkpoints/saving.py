"""Writes checkpoints, removes old ones, and reads them."""

from __future__ import annotations

import contextlib
import glob
import os

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import BAD, Refusal
from hccl_tools.common.words import one_line
from tools.trainer.checkpoints import CheckpointError, labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mindspore import Parameter, nn

    from tools.trainer.checkpoints.strategies import Shapes


@contextlib.contextmanager
def into(folder: str) -> Iterator[None]:
    """Refuses with a message what cannot be written in `folder`: the disk is full, or a file is in its place."""
    try:
        yield
    except OSError as error:
        text = tr(
            "no checkpoint could be saved in {folder}: {reason}; make room there, or name another folder in "
            "train.ckpt_save_dir",
            folder=one_line(folder),
            reason=strerror(error),
        )
        raise Refusal(BAD, text) from error


def save(network: nn.Cell, folder: str, prefix: str, label: labels.Label, integrated: bool = True) -> str:
    """Writes a checkpoint of `network` (with its optimizer) and its label; returns the path.

    label: without size and checksum; integrated: whether MindSpore merges what it has cut itself.
    Raises OSError when the disk is full or the like.
    """
    import mindspore as ms

    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{prefix}-{label.epoch}_{label.steps}.ckpt")
    draft = os.path.join(folder, f".{os.path.basename(path)[:-5]}.part.ckpt")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(draft)  # an incomplete one of an earlier attempt; MindSpore leaves its files read-only
    ms.save_checkpoint(network, draft, integrated_save=integrated)
    label = labels.sized(draft, label)
    labels.publish(draft, path)
    labels.write(path, label)
    return path


def remove_old(folder: str, run: int, keep: int) -> None:
    """Removes checkpoints of the run `run` from `folder`, except the newest `keep`; those of other runs stay."""
    own = [(path, label) for path, label in labels.read(folder).items() if label.run == run]
    own.sort(key=lambda item: item[1].point, reverse=True)
    for path, _ in own[keep:]:
        for name in (labels.path_of(path), path):  # the label first: what is half gone is not whole
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)


def free_prefix(folder: str, name: str) -> str:
    """`name`, or name_1, name_2 ..., so that no file of an earlier run in `folder` is written over."""
    number, prefix = 0, name
    while glob.glob(os.path.join(glob.escape(folder), f"{glob.escape(prefix)}-*.ckpt")):
        number += 1
        prefix = f"{name}_{number}"
    return prefix


# ---- Reads checkpoints, and refuses what does not fit before anything is loaded.


def read(path: str) -> dict[str, Parameter]:
    """{parameter name: Parameter} in the file `path`.  Raises CheckpointError."""
    import mindspore as ms

    shown = tr("checkpoint {path}", path=one_line(path))
    if not os.path.isfile(path):
        folder = tr("{checkpoint}: is a folder, name a .ckpt file in it", checkpoint=shown)
        missing = tr("{checkpoint}: no such file", checkpoint=shown)
        raise CheckpointError(folder if os.path.isdir(path) else missing)
    label = labels.read(os.path.dirname(path) or ".").get(path)
    if label and not labels.is_whole(path, label):
        text = tr("{path} is not what was saved: it is damaged or cut off; take an earlier one", path=shown)
        raise CheckpointError(text)
    try:
        return ms.load_checkpoint(path)
    except (ValueError, TypeError, RuntimeError, OSError) as error:
        reason = one_line(str(error).strip().partition("\n")[0])
        text = tr(
            "{path} cannot be read, it is damaged, cut off, or no checkpoint: {reason}", path=shown, reason=reason
        )
        raise CheckpointError(text) from error


def load(path: str, *cells: nn.Cell, source: str | None = None) -> None:
    """Loads the file `path` into the cells (a network, an optimizer); all of each cell's parameters must fit.

    source: what messages name instead, the folder from which the file was merged.
    """
    import mindspore as ms

    values = read(path)
    shapes = {name: tuple(parameter.shape) for name, parameter in values.items()}
    for cell in cells:
        check_fit(
            source or path, shapes, {parameter.name: tuple(parameter.shape) for parameter in cell.get_parameters()}
        )
    for cell in cells:
        ms.load_param_into_net(cell, values)


def check_fit(path: str, shapes: Shapes, wanted: Shapes) -> None:
    """Raises CheckpointError unless `shapes`, of `path`, has every parameter of `wanted` in its shape."""
    shown = tr("checkpoint {path}", path=one_line(path))
    for name, shape in wanted.items():
        if name not in shapes:
            text = tr(
                "{path} has no {name}: it belongs to another network or optimizer, or to another rank's part of "
                "the network; use one that was saved with this config",
                path=shown,
                name=name,
            )
            raise CheckpointError(text)
        if shapes[name] != shape:
            text = tr(
                "{path}: {name} has the shape {found}, but here {shape}; it belongs to another network, or was "
                "cut for another number of ranks (tools/convert_ckpt.py cuts it again)",
                path=shown,
                name=name,
                found=shapes[name],
                shape=shape,
            )
            raise CheckpointError(text)
