"""Finds the folders with the lock files of all users of this host, and opens files in them safely.

Each user has a folder, `mindspore-launch-UID`, in a base folder where all users can make names.  So a name proves
nothing: only the properties of the open file count.  Links are not followed, files that could block are not opened, and
files of other users are not changed.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Iterator

from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import Refusal, refused
from hccl_tools.common.words import one_line

BASES = ("/run/lock", "/tmp")  # not TMPDIR: the same for every user; they may be links, which root has made
PREFIX = "mindspore-launch-"
MOST_BYTES, MOST_FILES = 1 << 16, 200  # of one file, and of one user: this bounds what we read

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class LockFile(Record):
    """A lock file that is open for reading."""

    path: str
    descriptor: int
    about: os.stat_result


def bases() -> tuple[str, ...]:
    """The folders with the users' folders."""
    named = os.environ.get("LAUNCH_LOCKS")
    return (named.rstrip("/") or "/",) if named else BASES


def files() -> Iterator[LockFile]:
    """The lock files of all users, each open until the next one is asked for.  Raises OSError."""
    seen: dict[int, int] = {}
    for base in bases():
        try:
            parent = _open_folder(base)
        except FileNotFoundError:
            continue
        try:
            for name in os.listdir(parent):
                if name.startswith(PREFIX):
                    yield from _files_of_user(parent, os.path.join(base, name), seen)
        finally:
            os.close(parent)


def _files_of_user(parent: int, path: str, seen: dict[int, int]) -> Iterator[LockFile]:
    """The files in the folder at `path`, which is in the folder `parent`, that belong to the folder's owner.

    seen: how many files of each user there were so far.
    """
    try:
        folder = os.open(os.path.basename(path), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
    except OSError:
        return  # a link, a file, or a folder that we may not read
    try:
        owner = os.fstat(folder).st_uid
        for name in _names(folder, MOST_FILES - seen.get(owner, 0)):
            seen[owner] = seen.get(owner, 0) + 1
            try:
                descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY, dir_fd=folder)
            except OSError:
                continue  # it has gone, or we may not read it
            try:
                about = os.fstat(descriptor)
                if stat.S_ISREG(about.st_mode) and about.st_uid == owner:
                    yield LockFile(path=os.path.join(path, name), descriptor=descriptor, about=about)
            finally:
                os.close(descriptor)
    finally:
        os.close(folder)


def _names(folder: int, most: int) -> list[str]:
    """At most so many names in the open folder."""
    with os.scandir(folder) as entries:
        return [entry.name for entry in itertools.islice(entries, most)]


def make() -> tuple[int | None, str]:
    """(descriptor, path) of a new file with which a job locks its devices, in a folder that only this user can write.

    None: there can be none, and `why_none` states why.  The lock lasts as long as the launcher or a rank has it open.
    """
    path = os.path.join(_own_folder(), f"{os.getpid()}.{int.from_bytes(os.urandom(3), 'big')}")
    try:
        if os.stat(os.path.dirname(path), follow_symlinks=False).st_uid != os.geteuid():
            return None, path
        # until the lock is taken no other process may open the file, and lock it; O_EXCL follows no link
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError:
        return None, path
    os.set_inheritable(descriptor, True)
    return descriptor, path


def _own_folder() -> str:
    """This user's folder for locks; makes it if it is missing.

    Other users can make any name in /run/lock and /tmp, so there are ten names for it.
    """
    base, may_make = _own_base()
    folder = ""
    for suffix in ("", *(f"-{number}" for number in range(1, 10))):
        folder = os.path.join(base, f"{PREFIX}{os.geteuid()}{suffix}")
        if may_make and not os.path.lexists(folder):
            _make(folder, 0o755)
        try:
            about = os.lstat(folder)
        except OSError:
            continue
        if stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid():
            return folder
    return folder


def _own_base() -> tuple[str, bool]:
    """(the base folder, whether we may make ours in it): not where others could rename it."""
    named = os.environ.get("LAUNCH_LOCKS")
    if named:
        base = named.rstrip("/") or "/"  # with the slash, a link would be followed
        if not os.path.lexists(base):
            _make(base, 0o1777)
        if os.path.islink(base):
            return base, False
    else:
        base = BASES[1]
        if os.path.isdir(BASES[0]) and os.stat(BASES[0]).st_mode & stat.S_ISVTX and os.access(BASES[0], os.W_OK):
            base = BASES[0]
    try:
        about = os.stat(base)
    except OSError:
        return base, False
    return base, bool(about.st_mode & stat.S_ISVTX) or about.st_uid == os.geteuid()


def _make(folder: str, mode: int) -> None:
    try:
        os.mkdir(folder, mode)
        os.chmod(folder, mode)  # whatever the umask
    except OSError:
        return  # another process was faster, or it cannot be made


def check_mine(descriptor: int, path: str) -> None:
    """Raises OSError unless only this user can have made the file, or can put another in its place.

    descriptor: of the file at `path`, which the launcher has made; Refusal if it is not there any more.
    """
    about = os.fstat(descriptor)
    try:
        if not stat.S_ISREG(about.st_mode) or not os.path.samestat(about, os.lstat(path)):
            raise lost(path)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise lost(path) from error
    folder = os.path.dirname(path)
    _check_base(os.path.dirname(folder))
    _check_folder(folder)


def why_none(path: str) -> OSError:
    """Why the launcher could not make the file at `path`."""
    folder = os.path.dirname(path)
    try:
        _check_base(os.path.dirname(folder))
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o755)
        _check_folder(folder)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(path)
    except OSError as error:
        return error
    return OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)


def lost(path: str) -> Refusal:
    """The refusal to take devices without the file."""
    return refused("{path}, the lock on the devices, was removed by another process; start again", path=one_line(path))


def _check_base(base: str) -> None:
    about = _about(_open_folder(base))
    if about.st_mode & _OTHERS_WRITE and not about.st_mode & stat.S_ISVTX:
        raise _unusable(base, tr("others can rename what is in it; its owner can correct that with chmod +t"))
    if base not in BASES and about.st_uid not in (0, os.geteuid()):
        raise _unusable(base, tr("belongs to {user}; it must be yours or of root", user=user(about.st_uid)))


def _check_folder(folder: str) -> None:
    about = _about(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW))
    if about.st_uid != os.geteuid():
        raise _unusable(folder, tr("belongs to {user}", user=user(about.st_uid)))
    if about.st_mode & _OTHERS_WRITE:
        raise _unusable(folder, tr("others can write it; correct that with chmod go-w"))


def user(number: int) -> str:
    """The name of the user with this number."""
    import pwd  # only what is printed needs it

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # a container's user often has no name
        return tr("user {number}", number=number)


def _open_folder(base: str) -> int:
    """The open base folder.  A link in the place of one that the user has named is not followed."""
    return os.open(base, os.O_RDONLY | os.O_DIRECTORY | (0 if base in BASES else os.O_NOFOLLOW))


def _about(folder: int) -> os.stat_result:
    """The state of the open folder, which is closed."""
    try:
        return os.fstat(folder)
    finally:
        os.close(folder)


def _unusable(path: str, why: str) -> OSError:
    return OSError(errno.EPERM, why, path)
