"""Makes links to the logs of runs in folders that people name, in Open MPI's layout, and recognises our own links.

`mpirun --output-filename DIR` writes DIR/1/rank.N/stdout.  People type that line again and again, with the same DIR.
So a launch replaces the links of earlier launches there, and nothing else: all other files are the user's logs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator


def is_run(name: str) -> bool:
    """Whether this is the name of a run's folder, such as ``ascend8p-20261121T170610Z-4711``, maybe with ``-2``."""
    words = name.split("-")
    for at in (-2, -3):
        stamp, numbers = "".join(words[at : at + 1]), words[at + 1 :]
        if len(stamp) == 16 and stamp[8] == "T" and stamp[15] == "Z" and (stamp[:8] + stamp[9:15]).isdigit():
            return len(words) > -at and all(map(str.isdigit, numbers))
    return False


def is_log(path: str) -> bool:
    """Whether the path is a log in the folder of a run, or of one of its restarts."""
    folder, name = os.path.split(path)
    above, last = os.path.split(folder)
    if last.startswith("restart_"):
        last = os.path.basename(above)
    return is_run(last) and (name == "scheduler.log" or (name.startswith("rank_") and name.endswith(".log")))


def is_ours(path: str) -> bool:
    """Whether a launch may replace what is there: nothing, or a link to a log of a run, which may be gone."""
    try:
        return is_log(os.readlink(path))
    except FileNotFoundError:
        return True
    except OSError:  # not a link
        return False


def place(folder: str, rank: int, ranks: int) -> str:
    """The place of the rank's link; like Open MPI, it pads the numbers."""
    return os.path.join(folder, "1", f"rank.{rank:0{len(str(ranks))}d}", "stdout")


def make(path: str, log: str) -> None:
    """Makes the link, in a folder that may be missing.  Raises OSError."""
    draft = f"{path}.{os.getpid()}.part"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(log, draft)
    os.replace(draft, path)


def foreign(folder: str, numbers: Iterable[int], ranks: int) -> Iterator[str]:
    """The places of these ranks with something that a launch must not replace."""
    if os.path.isdir(os.path.join(folder, "1")):
        yield from (path for path in (place(folder, number, ranks) for number in numbers) if not is_ours(path))


def clear(folder: str) -> None:
    """Removes the links of earlier launches, with the folders that are empty then: another job may have fewer ranks."""
    first = os.path.join(folder, "1")
    try:
        names = os.listdir(first)
    except OSError:
        return  # there are none
    for name in names:
        path = os.path.join(first, name, "stdout")
        try:
            if name.startswith("rank.") and os.path.islink(path) and is_ours(path):
                os.unlink(path)
                os.rmdir(os.path.dirname(path))
        except OSError:
            continue  # it has gone, or something else is next to it
