"""The candidates for TAB: words of ours, names of the user's files, and kinds that the shell itself can list."""

from __future__ import annotations

import os

from hccl_tools.common.quoting import harmless
from hccl_tools.common.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FILES, FOLDERS, HOSTS, NOTHING = "files", "folders", "hosts", "nothing"  # what a shell lists by its own means
PROGRAMS, CONFIGS = "programs", "configs"  # what zsh lists by its own means
_CONFIG = (".yaml", ".yml")
_ENDS = {PROGRAMS: (".py", ".sh", *_CONFIG), CONFIGS: _CONFIG}


class Offer(Record):
    """All begin with the word at the cursor."""

    words: tuple[str, ...] = ()  # of ours
    runs: tuple[str, ...] = ()  # paths, which may have any character: the shell must quote them
    files: tuple[str, ...] = ()  # what the shell would list of the kind `native`, if it could
    native: str = NOTHING


def words(every: Iterable[str], begun: str, native: str = NOTHING) -> Offer:
    """The candidates that begin with it."""
    return Offer(words=tuple(word for word in every if word.startswith(begun)), native=native)


def files(kind: str, begun: str) -> Offer:
    """Files of the kind, PROGRAMS or CONFIGS, and folders; if there is none, the shell lists all files."""
    return Offer(files=tuple(sorted(_files(kind, begun))), native=kind)


def runs(logs: str, begun: str, native: str = FOLDERS) -> Offer:
    """Runs in the folder of logs; other folders the shell lists."""
    found = (os.path.join(logs, name) for name, entry in _entries(logs) if _is_run(entry))
    return Offer(runs=tuple(sorted(path for path in found if path.startswith(begun))), native=native)


def _files(kind: str, begun: str) -> Iterator[str]:
    folder, slash, start = begun.rpartition("/")
    for name, entry in _entries(os.path.expanduser(f"{folder}{slash}") or "."):
        if name.startswith(start) and (start or not name.startswith(".")) and _is_of(kind, name, entry):
            yield f"{folder}{slash}{name}"


def _is_of(kind: str, name: str, entry: os.DirEntry[str]) -> bool:
    try:
        if name.endswith(_ENDS[kind]) or entry.is_dir():
            return True
        return kind == PROGRAMS and entry.is_file() and os.access(entry.path, os.X_OK)
    except OSError:
        return False  # a link to nothing that this user may see


def _is_run(entry: os.DirEntry[str]) -> bool:
    return os.path.exists(os.path.join(entry.path, "launch.json"))


def _entries(folder: str) -> list[tuple[str, os.DirEntry[str]]]:
    """(name, entry) of what is in the folder.  What could command a terminal is left out, and so is an end of line."""
    try:
        with os.scandir(folder) as found:
            return [(entry.name, entry) for entry in found if harmless(entry.name) == entry.name]
    except OSError:
        return []  # no such folder, or none for this user: there is nothing to offer
