"""Writes the label of every checkpoint, and files that are on the disk completely or not at all."""

from __future__ import annotations

import glob
import json
import os
import sys
import zlib

from hccl_tools.common import documents
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import one_line
from tools.trainer.checkpoints import CheckpointError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Point = tuple[int, int, int]

NEWEST = "newest_run.json"

# The largest number of each kind; others: 2**31 - 1. The ranks tell each other runs and epochs in 32 bits (agreement).
_MOST = {"run": 3_700_000_000, "bytes": 1 << 62, "crc32": (1 << 32) - 1}


class Label(Record):
    """The content of a checkpoint.

    model, mode: as in the config; run: seconds since 1970 when the run was first started, the same on
    all ranks and kept when it is resumed; epoch, steps: the epoch in which it was saved, and the steps of
    it that were done; epoch_steps: how many it has, 0 for as many; rank, ranks: whose it is, in a job of
    how many; whole: 1 where the file has the whole network, not a rank's part of it; bytes, crc32: size
    and checksum of the .ckpt file.
    """

    model: str
    mode: str
    run: int
    epoch: int = 0
    steps: int = 0
    epoch_steps: int = 0
    rank: int
    ranks: int
    whole: int = 0
    bytes: int = 0
    crc32: int = 0

    @property
    def point(self) -> Point:
        """The order of checkpoints: the newest run first, in it the latest epoch, in it the latest step."""
        return (self.run, self.epoch, self.steps)

    def done(self, steps: int) -> tuple[int, int]:
        """(whole epochs, steps of the next one) that are done, for a job with `steps` steps an epoch.

        A job with other ranks or batches has another number of steps: the same share of the epoch is done.
        """
        if self.steps >= self.epoch_steps:
            return self.epoch, 0
        return self.epoch - 1, self.steps * steps // self.epoch_steps


def path_of(checkpoint: str) -> str:
    """The path of a .ckpt file's label."""
    return checkpoint[: -len(".ckpt")] + ".json"


def sized(path: str, label: Label) -> Label:
    """The label with size and CRC-32 of the file; it is on the disk first, so that a renamed file is whole."""
    size = checksum = 0
    with open(path, "rb") as file:
        os.fsync(file.fileno())
        while block := file.read(1 << 20):
            size, checksum = size + len(block), zlib.crc32(block, checksum)
    return label.replace(bytes=size, crc32=checksum)


def is_whole(path: str, label: Label) -> bool:
    """Whether the checkpoint exists and fits its label."""
    try:
        return os.path.isfile(path) and os.path.getsize(path) == label.bytes and sized(path, label) == label
    except OSError:
        return False


def write(checkpoint: str, label: Label) -> None:
    """Writes the label of the .ckpt file."""
    write_json(path_of(checkpoint), label.as_dict())


def read(folder: str) -> dict[str, Label]:
    """{path of a .ckpt: Label} of all labelled checkpoints directly in `folder`, whole or not.

    Raises CheckpointError where the folder is there and may not be read: it would look like one without any.
    """
    if os.path.isdir(folder) and not os.access(folder, os.R_OK | os.X_OK):
        text = tr("{folder} cannot be read; give this user the permission (chmod u+rx)", folder=one_line(folder))
        raise CheckpointError(text)
    found = {}
    for path in glob.glob(os.path.join(glob.escape(folder), "*.json")):
        try:
            label = _label(documents.read_json(path))
        except (OSError, ValueError):
            continue  # not readable, so it labels nothing
        if label:
            found[path[: -len(".json")] + ".ckpt"] = label
    return found


def _label(data: object) -> Label | None:
    """The label that a JSON value is; None where a field is missing, or is not what a label has there."""
    names = Label.__annotations__
    if isinstance(data, dict):
        # Earlier labels lack these: they are of whole epochs.
        data = {"epoch_steps": 0, "whole": int(data.get("mode") == "data_parallel"), **data}
    if not isinstance(data, dict) or not all(_fits(data.get(name), name, kind) for name, kind in names.items()):
        return None
    return Label(**{name: data[name] for name in names})


def _fits(value: Any, name: str, kind: str) -> bool:
    if kind == "str":
        return isinstance(value, str)
    return type(value) is int and 0 <= value <= _MOST.get(name, (1 << 31) - 1)


def begin(folder: str, run: int) -> None:
    """Marks `run` as the newest in a rank's folder: what earlier runs left there is not continued."""
    os.makedirs(folder, exist_ok=True)
    write_json(os.path.join(folder, NEWEST), {"run": run})


def newest_run(folder: str) -> int | None:
    """The run begun last in a rank's folder; None where none is marked, or the mark is damaged."""
    path = os.path.join(folder, NEWEST)
    if not os.path.lexists(path):
        return None  # made by tools/convert_ckpt.py: one run only
    try:
        data = documents.read_json(path)
    except (OSError, ValueError):
        data = None
    run: Any = data.get("run") if isinstance(data, dict) else None
    if _fits(run, "run", "int"):
        return int(run)
    # Only resuming reads it, once: the line is in the rank's log.
    text = tr("{path} is damaged; the newest of all checkpoints next to it is used", path=one_line(path))
    print(text, file=sys.stderr, flush=True)
    return None


def write_json(path: str, document: dict[str, object]) -> None:
    """Writes a JSON file that is whole or not there."""
    draft = f"{path}.{os.getpid()}.part"
    with open(draft, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    publish(draft, path)


def publish(draft: str, path: str) -> None:
    """Renames a file that is on the disk; afterwards its new name is on the disk, too."""
    os.replace(draft, path)
    handle = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
