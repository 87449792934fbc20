"""Writes the archive: a complete tar.gz or none, which replaces no file and which only its owner can read."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import stat
import tarfile

from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import USAGE, Refusal, misused
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

ENDINGS = (".tar.gz", ".tgz")
_LONGEST_NAME = 240  # bytes of a file's name, of 255


def check(path: str) -> None:
    """Raises Refusal where no bundle can be at `path`: before anything is read."""
    shown = one_line(path)
    base = os.path.basename(path)
    if not base.endswith(ENDINGS) or base in ENDINGS:
        raise misused("--bundle {path}: name a file that ends in .tar.gz or .tgz", path=shown)
    if os.path.lexists(path):
        raise _exists(path)
    if not os.path.isdir(os.path.dirname(path) or "."):
        raise misused("--bundle {path}: there is no such folder", path=shown)


def _exists(path: str) -> Refusal:
    return Refusal(
        USAGE, tr("--bundle {path}: the file exists and was not changed; name a new file", path=one_line(path))
    )


class Archive:
    """Takes members, and becomes the file on `commit`; without that nothing stays.  Raises Refusal."""

    def __init__(self, path: str, top: str) -> None:
        self.path, self.top = path, top
        self.size = 0  # bytes of all members
        self._draft = f"{path}.{os.getpid()}.part"
        self._names: set[str] = set()
        self._made = False

    def __enter__(self) -> Archive:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.fdopen(os.open(self._draft, flags, 0o600), "wb")
        except OSError as error:
            raise self._refusal(error) from error
        self._made = True
        self._packed = gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=self._file)
        self._tar = tarfile.open(fileobj=self._packed, mode="w", format=tarfile.PAX_FORMAT)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            with contextlib.suppress(OSError):
                if not self._file.closed:  # not committed: gzip insists on writing an end, which goes nowhere
                    with open(os.devnull, "wb") as nowhere:
                        os.dup2(nowhere.fileno(), self._file.fileno(), inheritable=False)
                self._packed.close()
                self._file.close()
        finally:
            if self._made:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._draft)

    def add(self, name: str, data: bytes, mtime: float) -> str:
        """Adds a file; returns its name, which may have got a number so that it is new."""
        name = self._new(name)
        info = tarfile.TarInfo(f"{self.top}/{name}")
        info.size, info.mode, info.mtime = len(data), 0o600, max(0, int(mtime))
        try:
            self._tar.addfile(info, io.BytesIO(data))
        except OSError as error:
            raise self._refusal(error) from error
        self.size += len(data)
        return name

    def commit(self) -> None:
        """Gives the file its name."""
        try:
            self._tar.close()
            self._packed.close()
            self._file.flush()
            os.fsync(self._file.fileno())
            os.fchmod(self._file.fileno(), stat.S_IRUSR | stat.S_IWUSR)
            self._give_name()
        except FileExistsError as error:
            raise _exists(self.path) from error
        except OSError as error:
            raise self._refusal(error) from error

    def _give_name(self) -> None:
        try:
            os.link(self._draft, self.path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV):
                raise
            if os.path.lexists(self.path):  # a file system without hard links
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.path) from error
            os.rename(self._draft, self.path)
            self._made = False

    def _new(self, name: str) -> str:
        name = harmless(name)
        stem, ending = os.path.splitext(name)
        number = 1
        while name in self._names:
            name, number = f"{stem}.{number}{ending}", number + 1
        self._names.add(name)
        return name

    def _refusal(self, error: OSError) -> Refusal:
        reason = strerror(error)
        text = tr(
            "--bundle {path}: cannot be written: {reason}; no file is made", path=one_line(self.path), reason=reason
        )
        return Refusal(USAGE, text)


def harmless(name: str) -> str:
    """The name as one below a folder, of characters that a terminal shows."""
    parts = [part for part in one_line(name).split("/") if part not in ("", ".", "..")]
    return "/".join(part.encode()[:_LONGEST_NAME].decode("utf-8", "ignore") for part in parts) or "unnamed"
