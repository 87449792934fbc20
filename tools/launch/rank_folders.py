"""--rank_folder: runs each rank in a folder of its own, folders/rank_N in the run's folder, which stays for restarts.

The loops of many start scripts make such folders, and copy the program into each, so that ranks do not overwrite one
another's files.  --rank_files names what is copied: in the folder where the command is typed or, as ../*.py, next to
it.  The files are copies and not links: what a rank writes stays in its folder.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import USAGE, Refusal, misused, refused
from hccl_tools.common.words import one_line, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.launch.request import Request

USUAL = "*.py,*.sh,*.yaml,*.yml,*.json,src,config,configs"
MOST_FILES, MOST_BYTES = 10_000, 1 << 28  # of one rank: code and configs; data stay where they are
_LEFT_OUT = ("__pycache__", ".git", ".svn")


def choose(request: Request, run_dir: str) -> list[str]:
    """The paths that are copied for each rank, as they are named here.  Raises Refusal."""
    import glob

    found: dict[str, None] = {}
    for pattern in filter(None, map(str.strip, (request.rank_files or USUAL).split(","))):
        paths = sorted(glob.glob(pattern))
        if not paths and request.rank_files is not None:
            text = tr("nothing of this name is in {folder}", folder=one_line(os.getcwd()))
            raise Refusal(USAGE, f"--rank_files {one_line(pattern)}: {text}")
        found.update(dict.fromkeys(path for path in paths if not _holds(path, run_dir)))
    _check_size(list(found))
    return list(found)


def of_rank(run_dir: str, rank: int | str) -> str:
    """The rank's folder."""
    return os.path.join(run_dir, "folders", f"rank_{rank}")


def make(run_dir: str, rank: int | str, paths: Sequence[str]) -> str:
    """Makes the rank's folder, if it is not there; returns it.  The current folder has the paths.  Raises OSError."""
    folder = of_rank(run_dir, rank)
    if os.path.isdir(folder):
        return folder
    import shutil

    draft = f"{folder}.part"
    shutil.rmtree(draft, ignore_errors=True)
    os.makedirs(draft)
    for path in paths:
        target = os.path.join(draft, place(path))
        if os.path.isdir(path):
            left_out = shutil.ignore_patterns(*_LEFT_OUT)
            shutil.copytree(path, target, symlinks=True, ignore=left_out, dirs_exist_ok=True)
        else:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copy2(path, target)
    os.rename(draft, folder)
    return folder


def there(run_dir: str, rank: int | str, paths: Sequence[str]) -> str:
    """The same before a restart; the rank cannot start in a folder that has gone and cannot be made again."""
    try:
        return make(run_dir, rank, paths)
    except OSError:
        return of_rank(run_dir, rank)


def place(path: str) -> str:
    """The place of a path's copy in a rank's folder: the same place, or the top if the path is from elsewhere."""
    path = os.path.normpath(path)
    return os.path.basename(path) if os.path.isabs(path) or path.startswith("..") else path


def command(words: list[str], first: int, paths: Sequence[str]) -> list[str]:
    """The command for a rank's folder: what is not copied there gets its whole path; from the `first` on, the words are
    the user's own, and stay."""
    return [*(_from_there(word, paths) for word in words[:first]), *words[first:]]


def remarks(request: Request, paths: Sequence[str]) -> list[str]:
    """Notes about arguments that name files here which the ranks' folders do not have."""
    for word in request.trainer_arguments[1 if request.program else 0 :]:
        named = word.partition("=")[2] or word
        if not os.path.isabs(named) and os.path.exists(named) and _copied(named, paths) is None:
            return [
                tr(
                    "note: {word} names something of this folder, which the ranks' folders do not have: write its "
                    "full path, or add it to --rank_files",
                    word=one_line(word),
                )
            ]
    return []


def _from_there(word: str, paths: Sequence[str]) -> str:
    path, separator, test = word.partition("::")  # of pytest
    if word.startswith("-") or os.path.isabs(path) or not os.path.isfile(path):
        return word
    return (_copied(path, paths) or os.path.abspath(path)) + separator + test


def _copied(path: str, paths: Sequence[str]) -> str | None:
    """Where the copy of a path is, which may be in a folder that is copied; None: it is not copied."""
    path = os.path.normpath(path)
    for each in map(os.path.normpath, paths):
        if path == each or path.startswith(each + os.sep):
            return place(each) + path[len(each) :]
    return None


def _holds(path: str, run_dir: str) -> bool:
    """Whether the logs are there: a copy would have a copy in it."""
    return (os.path.abspath(run_dir) + os.sep).startswith(os.path.abspath(path) + os.sep)


def _check_size(paths: Sequence[str]) -> None:
    """Refuses data, of which each rank would get a copy."""
    number = size = 0
    for path in paths:
        if "\n" in path:
            raise misused("--rank_files {path}: its name contains a line break", path=one_line(path))
        for file in _files(path):
            try:
                number, size = number + 1, size + os.lstat(file).st_size
            except OSError:
                continue  # it has gone
            if number > MOST_FILES or size > MOST_BYTES:
                raise refused(
                    "--rank_files: with {path} each rank gets more than {files} files or {size}; name fewer "
                    "files, and give the program the full path of its data",
                    path=one_line(path),
                    files=MOST_FILES,
                    size=size_of(MOST_BYTES),
                )


def _files(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
    for folder, folders, names in os.walk(path):
        folders[:] = [name for name in folders if name not in _LEFT_OUT]
        yield from (os.path.join(folder, name) for name in names)
