"""Tracks the checkpoints that an attempt saves; a new one shows that the job came further, whatever its logs contain.

A trainer that starts from the beginning after a restart saves the same files again.  So a file with an epoch or a step
in its name counts if that is further than all before.  Any other file counts if it has a new name.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Stamp = tuple[int, int]  # when it was written, and its size
    Place = tuple[int, int]

ENDS = (".ckpt", ".safetensors", ".pt", ".pth")
_DEPTH, _MOST_ENTRIES = 4, 5000
# As MindSpore names them: PREFIX-EPOCH_STEP.ckpt.
_OF_MINDSPORE = re.compile(r"-(\d{1,9})_(\d{1,9})(?:_\w{1,40})?\.(?:ckpt|safetensors)$")
_NUMBERED = re.compile(r"(?:step|iter|iteration|checkpoint|ckpt|epoch)s?[-_=]?(\d{1,12})", re.IGNORECASE)
# Options by which trainers are told where to save; what they load from is not among them.
_OPTIONS = ("save", "save_dir", "save_path", "save_folder", "output_dir", "ckpt_save_dir", "checkpoint_dir")


def folders(words: Sequence[str], own: str | None, run_dir: str) -> list[str]:
    """The folders where the ranks may save.

    words: of their command; own: where this project's trainer saves.  A run has a folder of its own, ckpt.
    """
    found = {os.path.join(run_dir, "ckpt"): None, **({own: None} if own else {})}
    for place, word in enumerate(words):
        name, given, value = word.partition("=")
        if word.startswith("-") and name.strip("-").replace("-", "_") in _OPTIONS:
            following = words[place + 1] if place + 1 < len(words) else ""
            path = value if given else following
            if path and not path.startswith("-"):
                found[path] = None
    return list(found)


class Saves:
    """The content of these folders.  Files from before the first attempt are not of this job."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = list(paths)
        self._seen: dict[str, Stamp] = dict(self._look())
        self._names = set(self._seen)
        self._furthest: dict[bool, Place] = {}  # whether MindSpore names it so -> the furthest place

    def new(self) -> str:
        """The path of a checkpoint that was written since the last call, and is further than all before; "": none."""
        further = ""
        for path, stamp in self._look():
            if self._seen.get(path) != stamp:
                self._seen[path] = stamp
                further = path if self._is_further(path) else further
        return further

    def _is_further(self, path: str) -> bool:
        found = place_of(path)
        if found is None:
            is_new = path not in self._names
            self._names.add(path)
            return is_new
        kind, place = found
        before = self._furthest.get(kind)
        if before is not None and place <= before:
            return False
        self._furthest[kind] = place
        return True

    def _look(self) -> Iterator[tuple[str, Stamp]]:
        for top in self._paths:
            yield from _files(top)


def place_of(path: str) -> tuple[bool, Place] | None:
    """(whether it is MindSpore's form, the epoch and the step) in the name of a checkpoint; None: it has none."""
    if found := _OF_MINDSPORE.search(os.path.basename(path)):
        return True, (int(found[1]), int(found[2]))
    numbers = _NUMBERED.findall("/".join(path.split(os.sep)[-2:]))
    return (False, (0, int(numbers[-1]))) if numbers else None


def _files(top: str) -> Iterator[tuple[str, Stamp]]:
    """The checkpoints below the folder, of the first entries that are found; without drafts, which are hidden."""
    waiting, entries = [(top, 0)], 0
    while waiting and entries < _MOST_ENTRIES:
        folder, depth = waiting.pop()
        try:
            with os.scandir(folder) as names:
                for entry in names:
                    entries += 1
                    if entry.is_dir(follow_symlinks=False):
                        waiting += [(entry.path, depth + 1)] if depth < _DEPTH else []
                    elif entry.name.endswith(ENDS) and not entry.name.startswith(".") and (stamp := _stamp(entry)):
                        yield entry.path, stamp
        except (OSError, ValueError):  # ValueError: a path that cannot be one
            continue


def _stamp(entry: os.DirEntry[str]) -> Stamp | None:
    """None for an empty file, and one that is gone."""
    try:
        about = entry.stat()
    except OSError:
        return None
    return (about.st_mtime_ns, about.st_size) if about.st_size else None
