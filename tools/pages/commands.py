"""The commands that users type, scripts and Python, and the `--help` output of each."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from hccl_tools.common import project
from hccl_tools.common.record import Record

ROOT = Path(project.ROOT)
SCRIPTS = sorted(path.name for path in ROOT.glob("scripts/*.sh"))
# {script: the engines that it declares}; none: it launches nothing
ENGINES = {
    name: sorted(re.findall(r'start\.sh" ([a-z]+) ', (ROOT / "scripts" / name).read_text(encoding="utf-8")))
    for name in SCRIPTS
}
LAUNCHING = [name for name in SCRIPTS if ENGINES[name]]
OTHERS = [name for name in SCRIPTS if name not in LAUNCHING]
PYTHON_COMMANDS = [  # one that has the name of a script is that script's
    f"{folder}/{path.name}"
    for folder in ("hccl_tools", "tools")
    for path in sorted((ROOT / folder).glob("*.py"))
    if path.read_bytes().startswith(b"#!") and f"{path.stem}.sh" not in SCRIPTS
]


class Option(Record):
    names: tuple[str, ...]  # ("--log_dir",); an argument has one name without hyphens
    value: str  # "DIR", or ""
    meaning: str  # one line


class Help(Record):
    """The output of a command's `--help`."""

    purpose: str  # the first line
    usage: tuple[str, ...]
    options: tuple[Option, ...]


def text_of(command: str, language: str = "en") -> str:
    """The `--help` output of "scripts/x.sh" or "tools/x.py" in this language: en or zh."""
    alone = ("bash" if command.endswith(".sh") else sys.executable, command)
    return _together(language).get(command) or printed(alone, language)


@functools.cache
def _together(language: str) -> dict[str, str]:
    """{command: the same} of those that one process can ask; see asked.py."""
    words = (sys.executable, "-m", "tools.pages.asked", *(f"scripts/{name}" for name in LAUNCHING), *PYTHON_COMMANDS)
    told: dict[str, str] = json.loads(_output(words, language))
    return told


@functools.cache
def printed(words: tuple[str, ...], language: str = "en") -> str:
    """The output of this command with `--help` in this language: en or zh."""
    return _output((*words, "--help"), language)


def _output(words: tuple[str, ...], language: str) -> str:
    return subprocess.run(
        words,
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "500", "PYTHON": sys.executable, "NO_COLOR": "1", "LAUNCH_LANG": language},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout


def ask(command: str, language: str = "en") -> Help:
    found = read(text_of(command, language))
    if command.endswith(".py"):
        folder = os.path.dirname(command)
        return found.replace(usage=tuple(f"python {folder}/{line}" for line in found.usage))
    return found


def read(text: str) -> Help:
    """Parses `text` to a Help: in the form of our scripts, or of argparse."""
    usage = re.search(r"(?im)^(?:usage: |用法： ?)(.*(?:\n {6,}\S.*)*)", text)
    assert usage, f"no usage in: {text}"
    lines = [line.strip().replace("[-h] ", "").replace("[--lang {zh,en}] ", "") for line in usage[1].splitlines()]
    before, after = text[: usage.start()], text[usage.end() :]
    purpose = next(line for line in (before or after).splitlines() if line.strip())
    return Help(purpose=purpose, usage=tuple(lines), options=tuple(options(text)))


def options(text: str) -> Iterator[Option]:
    """Every argument and option of `text`, without --help."""
    found = None
    section = ""
    for line in [*text.splitlines(), "end"]:
        begins = re.match(r"  (\S.*?)(?:  +(\S.*))?$", line)
        if found and (begins or not line.startswith("   ")):
            if "--help" not in found.names:
                yield found
            found = None
        if line and not line.startswith(" "):
            section = line.lower()
        elif begins and (begins[1].startswith("-") or section.startswith(("positional", "位置参数"))):
            names, value = _names(begins[1])
            found = Option(names=names, value=value, meaning=begins[2] or "")
        elif found and line.strip():
            found = found.replace(meaning=f"{found.meaning} {line.strip()}".strip())


def _names(text: str) -> tuple[tuple[str, ...], str]:
    """("--config", "-c"), "FILE" of "--config FILE, -c FILE", which newer Pythons write "-c, --config FILE"."""
    names, value = [], ""
    for part in re.split(r", (?=-)", text):
        name, _, value_here = part.partition(" ")
        names.append(name)
        value = value_here or value
    one_spelling = {name.replace("-", "_"): name for name in sorted(names)}  # --a_b and --a-b are one
    return tuple(sorted(one_spelling.values(), key=lambda name: (-len(name), name))), value
