"""Mutations of what the scripts declare: the words behind `lib/start.sh` in scripts/*.sh.

A declaration is ENGINE ARGUMENT... KEY=VALUE..., and may span lines.  A script may have several.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from tests.mutations.mutation import Mutation
from tests.mutations.mutation import of_script as tests_of

# These change what may be typed, names, and when ranks are stopped, but not what a rank gets; source is shellcheck's.
# docs/options.md has the options for every script, and tests/project/test_options_page.py compares it.
OTHERS_TEST = ("options", "without", "grace", "name", "source")
OTHER_ENGINE = {"local": "mpirun", "mpirun": "local", "msrun": "local", "srun": "mpirun"}
_BEGIN = re.compile(r'start\.sh" (?=[a-z]+ )')
_WORD = re.compile(r"(?<![\w/$\"'{-])([a-z_]+)=(?!\()((?:'[^']*'|\"[^\"]*\"|[^\s'\"()])*)")
_PLACES = re.compile(r'start\.sh" (?P<engine>[a-z]+)(?= )(?: (?P<arguments>[A-Z_]+(?: [A-Z_]+)*)(?=\s))?')


class Word:
    """A word of a declaration, and where it is."""

    def __init__(self, key: str, text: str, span: tuple[int, int], prefix: str) -> None:
        self.key, self.span, self.prefix = key, span, prefix
        self.value = "".join(shlex.split(text)) if prefix else text

    def with_value(self, value: str) -> str:
        """Its text with another value."""
        return self.prefix + shlex.quote(value) if self.prefix else value  # arguments are words of their own


def scripts(root: Path) -> list[Path]:
    """The scripts that start ranks."""
    return [path for path in sorted((root / "scripts").glob("*.sh")) if _BEGIN.search(path.read_text(encoding="utf-8"))]


def words(root: Path, script: str) -> list[Word]:
    """The words of its declaration."""
    text = (root / "scripts" / script).read_text(encoding="utf-8")
    begin = _BEGIN.search(text)
    assert begin, script
    found = [Word(match[1], match[2], match.span(), f"{match[1]}=") for match in _WORD.finditer(text, begin.start())]
    for places in _PLACES.finditer(text, begin.start()):
        found += [Word(key, places[key], places.span(key), "") for key in ("engine", "arguments") if places[key]]
    typed = any(word.key == "arguments" and "DEVICE_TARGET" in word.value for word in found)  # then no word counts
    return [word for word in found if word.key not in OTHERS_TEST and not (typed and word.key == "device_target")]


def of_script(root: Path, script: str) -> list[Mutation]:
    """All mutations of a script's declaration."""
    found = []
    for word in words(root, script):
        for value in dict.fromkeys(_values(root, word)):
            what = f"{word.key} {value!r} in place of {word.value!r}" if value is not None else f"no {word.key}"
            text = "" if value is None else word.with_value(value)
            found.append(
                Mutation(f"{script}: {what}", f"scripts/{script}", text, span=word.span, tests=tests_of(script))
            )
    names = [mutation.name for mutation in found]  # run_cluster.sh has two ways, which have words in common
    return [
        mutation if names.count(mutation.name) == 1 else _numbered(mutation, names[:index].count(mutation.name))
        for index, mutation in enumerate(found)
    ]


def _numbered(mutation: Mutation, before: int) -> Mutation:
    return dataclasses.replace(mutation, name=f"{mutation.name} ({before + 1})")


def _values(root: Path, word: Word) -> Iterator[str | None]:
    """Other values of a word; None: without it."""
    makers = {"devices": _devices, "device_num": _number, "device_target": _target, "default_config": _config}
    makers.update(engine=_engine, arguments=_arguments)
    if word.key in makers:
        yield from makers[word.key](root, word.value)
    else:  # placement, alone, others, quoted, log_dir and keys to come
        yield None


def _devices(root: Path, value: str) -> Iterator[str | None]:
    first, end = map(int, re.findall(r"\d+", value))
    if end - first > 1:
        yield f"[{first},{end - 1})"
        yield f"[{first},{(first + end) // 2})"
    yield f"[{first + 1},{end + 1})" if first == 0 and end < 8 else f"[{first - 4},{end - 4})" if first else "[8,16)"
    yield None


def _number(root: Path, value: str) -> Iterator[str | None]:
    yield str(int(value) // 2)
    yield None


def _target(root: Path, value: str) -> Iterator[str | None]:
    yield from (other for other in ("Ascend", "GPU", "CPU") if other != value)
    if value:
        yield None


def _config(root: Path, value: str) -> Iterator[str | None]:
    folder = (root / value).parent
    yield next(str(path.relative_to(root)) for path in sorted(folder.glob("*.yaml")) if path != root / value)
    yield None


def _engine(root: Path, value: str) -> Iterator[str | None]:
    yield OTHER_ENGINE[value]


def _arguments(root: Path, value: str) -> Iterator[str | None]:
    first, *rest = value.split() or [""]  # none, of a quoted command: an argument more changes no rank
    if rest:
        yield " ".join([*rest, first])
        yield " ".join(rest)
    elif first:
        yield "CONFIG" if first != "CONFIG" else "DATA_PATH"
