"""Locates this project on the other hosts of a job: its folder on each, and whether its version is the same.

All hosts have the same Python. finder.py is sent to it as text, because the project's folder there is not known yet.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence

from hccl_tools.common import project, version
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Record
from hccl_tools.common.words import one_line
from hccl_tools.hosts import finder, node_sets

_MOST_NAMED = 8  # hosts, or sets of them, in one line
_WHOLE, _SHOWN = 64, 8  # characters of a digest
_NUMBER = re.compile(r"[0-9A-Za-z.+!_-]{1,40}")
_DIGEST = re.compile(r"[0-9a-f]{64}|unreadable")
# What is copied from a checkout; other folders there may be the user's.
_FOLDERS = ("configs", "docs", "hccl_tools", "mindspore_launch", "schemas", "scripts", "tools")


class Version(Record):
    """A version of this project: its number, and a digest of its modules, which a checkout may have changed."""

    number: str
    digest: str

    def words(self) -> list[str]:
        """The form in which it is sent to another host."""
        return [self.number, self.digest]

    def shown(self) -> str:
        """The form for people who compare two versions."""
        return tr("{number}, with files {digest}", number=self.number, digest=_shown(self.digest))


class Found(Record):
    """This project on another host."""

    version: Version | None  # None: it is not there
    elsewhere: bool = False  # in another folder than here
    folder: str = ""


def own() -> Version:
    """The version on this host: reads all modules, in 10 ms."""
    return Version(number=version.number(), digest=finder.digest(project.ROOT))


def question() -> list[str]:
    """The command that asks a host; `read` takes its answer."""
    return [sys.executable, "-I", "-c", _text(), project.ROOT]


def command(words: Sequence[str]) -> list[str]:
    """The command `words`, which names files of this project, for hosts that have it in whichever folder."""
    return [*question(), *words]


def _text() -> str:
    """finder.py without its docstring, in one line: not every shell has quotes around several."""
    with open(finder.__file__, encoding="utf-8") as file:
        source = file.read().split('"""', 2)[2].strip()
    return f"exec({json.dumps(source)})"


def read(said: str) -> Found | None:
    """The answer of a host; None: its Python did not run, or the output has another form."""
    if said == "none":
        return Found(version=None)
    kind, number, digest, folder = [*said.split(None, 3), "", "", "", ""][:4]
    found = version_of([number, digest])
    if kind not in ("same", "other") or not found or not folder:
        return None
    return Found(version=found, elsewhere=kind == "other", folder=folder)


def version_of(words: object) -> Version | None:
    """The Version that a host has sent as `Version.words`; None if it is of another form."""
    if not isinstance(words, list) or len(words) != 2 or not all(isinstance(word, str) for word in words):
        return None
    number, digest = words
    return Version(number=number, digest=digest) if _NUMBER.fullmatch(number) and _DIGEST.fullmatch(digest) else None


def problems(hosts: Mapping[str, Found]) -> list[str]:
    """A line for each other version that hosts have, and for those without any; empty if all have this one."""
    here = own()
    alike: dict[tuple[str, ...], list[str]] = {}
    folders: dict[tuple[str, ...], str] = {}
    for name, found in hosts.items():
        if found.version != here:
            key = tuple(found.version.words()) if found.version else ()
            alike.setdefault(key, []).append(name)
            folders.setdefault(key, found.folder)
    return [_problem(names, key, folders[key], here) for key, names in alike.items()]


def differ(hosts: Mapping[str, Version | None]) -> list[str]:
    """The same for hosts that have said only which version they have; None: one that does not state it."""
    return problems(
        {name: Found(version=found or Version(number=finder.UNKNOWN, digest="")) for name, found in hosts.items()}
    )


def _problem(names: Sequence[str], version_there: tuple[str, ...], folder: str, here: Version) -> str:
    hosts = node_sets.folded(names, _MOST_NAMED)
    if not version_there:
        return tr(
            "{hosts}: this project is neither at {folder} there nor installed in {python}; {remedy}",
            hosts=hosts,
            folder=one_line(project.ROOT),
            python=one_line(sys.executable),
            remedy=_remedy(names[0], False),
        )
    number, digest = version_there
    theirs, ours = tr("unknown") if number == finder.UNKNOWN else number, here.number
    if number == here.number:
        theirs, ours = Version(number=number, digest=digest).shown(), here.shown()
    text = {"hosts": hosts, "theirs": theirs, "ours": ours, "remedy": _remedy(names[0], number == here.number)}
    if not folder:
        return tr("{hosts}: another version of this project: {theirs}; this host has {ours}; {remedy}", **text)
    return tr(
        "{hosts}: another version of this project in {folder}: {theirs}; this host has {ours}; {remedy}",
        folder=one_line(folder),
        **text,
    )


def _shown(digest: str) -> str:
    return digest[:_SHOWN] if len(digest) == _WHOLE else tr("that cannot be read")


def _remedy(host: str, again: bool) -> str:
    """How the host gets the version that is here; again: it has one with the same number."""
    root = quote(project.ROOT)
    if project.is_installed():
        words = [sys.executable, "-m", "pip", "install", *(["--force-reinstall", "--no-deps"] if again else [])]
        line = " ".join(map(quote, [*words, f"mindspore-launch=={version.number()}"]))
        return tr("install the same there, with the same Python: {command}", command=line)
    folders = ",".join(name for name in _FOLDERS if os.path.isdir(project.path(name)))
    made = quote(f"mkdir -p {root}")
    line = f"ssh {quote(host)} {made} && rsync -a -s --delete {root}/{{{folders}}} {quote(f'{host}:{project.ROOT}/')}"
    return tr("share its folder, or copy it to each of them: {command}", command=line)
