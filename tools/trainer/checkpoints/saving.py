"""Writes checkpoints; removes old ones."""

from __future__ import annotations

import contextlib
import glob
import os

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import BAD, Refusal
from hccl_tools.common.words import one_line
from tools.trainer.checkpoints import labels

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mindspore import nn


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
            reason=error.strerror,
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
    """Removes checkpoints of the run `run` from `folder`, except for the newest `keep`; those of other runs stay."""
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
