"""Makes a bundle: collects the files of a job, masks and cuts each, and writes them into one new archive."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import re
import signal
import sys
import tarfile
import threading
import time
import zlib
from collections import Counter

from hccl_tools.common import how_far
from hccl_tools.common.language import marked, tr
from hccl_tools.common.refusal import Refusal, misused
from hccl_tools.common.typed import name_of
from hccl_tools.common.words import count, one_line
from tools.diagnosis.bundle import archive, cut, files, masking, names, pages, structured
from tools.launch import record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO, Any

    from tools.diagnosis.bundle.archive import Archive
    from tools.diagnosis.bundle.files import Collection, Item
    from tools.diagnosis.bundle.masking import Masker

_MOST_OF_DOCUMENT = 32 << 20  # bytes: a launch.json that is cut is not one
_PAGES = 1 << 20  # of the room, for the pages that come last: at most, and at most an eighth of all
_NO_ROOM = marked("it does not fit within --bundle_limit")
_NOT_A_TABLE = marked("it is not a rank table")
_DAMAGED = marked("the archive is damaged")
_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def make(target: str, limit: int, paths: list[str], is_run: bool, explain: Callable[[], int]) -> int:
    """Writes the bundle `target` of at most `limit` MiB; returns the exit code.

    explain: prints the explanation.
    """
    try:
        archive.check(target)
        if limit < 1:
            raise misused("--bundle_limit {limit}: give a number of MiB, 1 or more", limit=limit)
        for path in paths:
            if not os.path.exists(path):
                shown = one_line(path)
                raise misused("{path}: no such file or folder; no bundle is made", path=shown)
        with _signals_end_it():
            lines = _make(target, limit << 20, paths, is_run, explain)
    except Refusal as error:
        _tell(error.lines)
        return error.status
    _tell(lines)
    with contextlib.suppress(OSError):  # the reader left
        print(one_line(target), flush=True)
    return 0


def _make(target: str, limit: int, paths: list[str], is_run: bool, explain: Callable[[], int]) -> list[str]:
    explanation = _explanation(explain)
    launch = _launch(paths[0]) if is_run else {}
    found = files.of_run(paths[0], launch) if is_run else files.of_paths(paths)
    found.sort(limit - min(_PAGES, limit >> 3))
    with archive.Archive(target, _top(target)) as packed:
        packer = _Packer(packed, masking.Masker(_values(launch, found)), limit, found, is_run)
        packer.page(names.EXPLANATION, explanation)
        with how_far.doing(tr("examining this machine")):
            if is_run:
                packer.page(names.DOCTOR, pages.doctor())
            packer.page(names.VERSIONS, pages.versions())
        with how_far.doing(tr("packing {files}", files=count(len(found.items), "file")), len(found.items)) as work:
            for item in found.items:
                work.about = item.name
                packer.file(item)
                how_far.more()
        if not packer.logs:
            shown = ", ".join(map(one_line, paths))
            raise misused("{paths}: has no log that can be read; no file is made", paths=shown)
        packer.page(names.MASKED, pages.masked_page(packer.masked), masks=False)
        packer.page(names.CONTENTS, pages.contents(paths, packer.packed, found.left_out, packer.masked))
        packed.commit()
    return pages.summary(packer.masked, found.left_out)


def _explanation(explain: Callable[[], int]) -> str:
    """What the diagnosis prints; a diagnosis that fails does not keep the logs from a person who understands them."""
    out, notes = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(notes):
        try:
            explain()
        except Exception as error:
            reason = f"{type(error).__name__}: {one_line(error)}"
            _tell([tr("no explanation: {reason}", reason=reason)])
    return "\n".join(filter(None, [out.getvalue().rstrip("\n"), notes.getvalue()]))


def _launch(folder: str) -> dict[str, Any]:
    try:
        return record.read(folder)
    except Refusal:
        return {}


def _values(launch: dict[str, Any], found: Collection) -> dict[str, str]:
    """{value: name} of the secrets that this process, the launch and its ranks have in their environments."""
    values = {value: name for name, value in os.environ.items() if names.is_secret(name)}
    with contextlib.suppress(RecursionError):
        values.update(structured.secrets_of_json(launch))
    for item in found.items:
        if item.kind == files.ENVIRONMENT:
            with contextlib.suppress(OSError, cut.NotRead), _opened(item) as file:
                values.update(structured.secrets_of_environment(file.read(cut.MOST)))
    return values


def _opened(item: Item) -> IO[bytes]:
    return os.fdopen(cut.open_regular(item.path, item.seen), "rb")


def _top(target: str) -> str:
    """The folder in the archive; a reader of logs takes a name of this form for no host's."""
    stem = os.path.basename(target)
    for ending in archive.ENDINGS:
        stem = stem[: -len(ending)] if stem.endswith(ending) else stem
    return "debug_" + re.sub(r"[^A-Za-z0-9_]", "_", stem)[:80]


class _Packer:
    """Puts files into the archive, as long as there is room."""

    def __init__(self, packed: Archive, masker: Masker, limit: int, found: Collection, is_run: bool) -> None:
        self._archive, self._masker, self._limit = packed, masker, limit - min(_PAGES, limit >> 3)
        self._found, self._is_run = found, is_run
        self.logs = 0
        self.packed: list[tuple[str, int, int]] = []  # name, bytes, bytes that were cut
        self.masked: dict[str, Counter[str]] = {}

    def page(self, name: str, text: str, masks: bool = True) -> None:
        """A page of the bundle's own."""
        counts: Counter[str] = Counter()
        text = self._masker.text(text, counts) if masks else text
        data = text.encode("utf-8", "backslashreplace")
        self._add(name, cut.Cut(data=data, counts=counts, left_out=0), time.time())

    def file(self, item: Item) -> None:
        """A file of the job, or the logs in an archive."""
        if item.kind != files.ARCHIVE and not self._has_room(item.size):
            self._leave_out(item.name, _NO_ROOM)
            return
        try:
            with _opened(item) as file:
                if item.kind == files.ARCHIVE:
                    self._unpack(file, item)
                else:
                    self._add_log(item.name, self._read(file, item), item.mtime)
        except cut.NotRead as error:
            self._leave_out(item.name, str(error))
        except (EOFError, zlib.error, tarfile.TarError):
            self._leave_out(item.name, _DAMAGED)
        except OSError as error:
            self._leave_out(item.name, error.strerror or str(error))

    def _read(self, file: IO[bytes], item: Item) -> cut.Cut:
        counts: Counter[str] = Counter()
        if item.kind in (files.DOCUMENT, files.TABLE) and item.size <= _MOST_OF_DOCUMENT:
            data = file.read(_MOST_OF_DOCUMENT + 1)
            if item.kind == files.TABLE and not re.search(rb'"(?:server_list|group_list|server_count)"', data):
                raise cut.NotRead(_NOT_A_TABLE)
            return cut.Cut(data=structured.document(data, self._masker, counts), counts=counts, left_out=0)
        if item.kind == files.ENVIRONMENT and item.size <= cut.MOST:
            data = structured.environment(file.read(cut.MOST), self._masker, counts)
            return cut.Cut(data=data, counts=counts, left_out=0)
        return self._log(file, item.name, seekable=True)

    def _log(self, file: IO[bytes], name: str, seekable: bool) -> cut.Cut:
        """The ends of a log.  Raises NotRead: it is none."""
        if name.endswith(".gz"):
            with gzip.open(file) as unpacked:
                windows = cut.of_stream(unpacked)
        else:
            windows = cut.of_file(file) if seekable else cut.of_stream(file)
        if not self._is_run and (b"\0" in windows.head[:64] or not files.is_log(name)):
            raise cut.NotRead(files.NO_LOG)
        return cut.masked(windows, self._masker)

    def _unpack(self, file: IO[bytes], item: Item) -> None:
        """Adds the logs in a tar archive, each as if it were in a folder."""
        above = "" if item.name == os.path.basename(item.name) else item.name
        with tarfile.open(fileobj=file, mode="r|*") as opened:
            for member in opened:
                name = os.path.join(above, archive.harmless(member.name))
                if member.isdir():
                    continue
                content = opened.extractfile(member) if member.isreg() and files.is_log(name) else None
                if content is None:
                    self._leave_out(name, files.LINK if member.issym() or member.islnk() else files.NO_LOG)
                elif not self._has_room(member.size):
                    self._leave_out(name, _NO_ROOM)
                else:
                    self._add_log(name, self._member(content, name), member.mtime)

    def _member(self, content: IO[bytes], name: str) -> cut.Cut:
        counts: Counter[str] = Counter()
        if name.endswith(".env"):
            data = structured.environment(content.read(cut.MOST), self._masker, counts)
            return cut.Cut(data=data, counts=counts, left_out=0)
        return self._log(content, name, seekable=False)

    def _has_room(self, size: int) -> bool:
        return self._archive.size + min(size, cut.MOST) <= self._limit

    def _add_log(self, name: str, made: cut.Cut, mtime: float) -> None:
        if not self._has_room(len(made.data)):
            self._leave_out(name, _NO_ROOM)
            return
        name = name[: -len(".gz")] if name.endswith(".gz") else name
        if self._add(name, made, mtime):
            self.logs += 1

    def _add(self, name: str, made: cut.Cut, mtime: float) -> bool:
        name = self._archive.add(self._masker.text(name), made.data, mtime)
        self.packed.append((name, len(made.data), made.left_out))
        if made.counts:
            self.masked[name] = made.counts
        return not name.endswith((".json", ".env"))

    def _leave_out(self, name: str, reason: str) -> None:
        self._found.left_out.append(files.LeftOut(name, reason))


@contextlib.contextmanager
def _signals_end_it() -> Iterator[None]:
    """SIGTERM and SIGHUP end the command as an exception does, so that no draft and no doctor stays."""

    def end(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, end) for number in _SIGNALS if signal.getsignal(number) == signal.SIG_DFL}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(lines: list[str] | tuple[str, ...]) -> None:
    for line in lines:
        print(f"{name_of('diagnose.py')}: {one_line(line)}", file=sys.stderr)
