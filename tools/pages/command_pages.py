"""Makes a page for each command that users type, and a page that lists them, from the output of `--help`.

The pages are only part of the site: site.py writes them next to the copies of the others.
"""

from __future__ import annotations

import importlib.util
import os
import posixpath
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from hccl_tools.common import project, typed
from hccl_tools.common.grouping import grouped
from hccl_tools.common.record import Record
from tools.pages import commands as known
from tools.pages.options_page import table

LANGUAGES = ("en", "zh")
FOLDERS = {"en": Path("docs/commands"), "zh": Path("docs/zh/commands")}
INDEX = "README.md"  # the name of the page that lists the commands
_GROUPS = {
    "Launch": "启动",
    "Before a launch": "启动之前",
    "A run": "运行",
    "Rank tables": "rank table",
    "Training": "训练",
}
_OF_A_RUN = ("diagnose.py", "plot_log.py", "report.py", "runs.py", "watch.py")
_WORDS = {
    "en": {
        "title": "Commands",
        "about": "What `--help` of each command prints. [Every option](../options.md) has all of them in one page.",
        "usage": "What to type",
        "exit": "Exit codes",
        "row": "argument or option | meaning",
        "rows": "command | what it does",
    },
    "zh": {
        "title": "命令",
        "about": "各命令 `--help` 的输出。[全部选项](../options.md)把它们放在一页中。",
        "usage": "用法",
        "exit": "退出码",
        "row": "参数或选项 | 含义",
        "rows": "命令 | 作用",
    },
}
_USAGE = re.compile(r"(?i)(?:usage: |用法： ?)")
_EXIT = re.compile(r"(?:Exit: |退出码：\s*)")
_OPTIONS = re.compile(r"(?mi)^  -|^(?:positional arguments|位置参数)[:：]$")
_SPECIAL = re.compile(r"[\\`*_{}\[\]#|~^]")  # for Markdown
_OUR_PAGE = re.compile(r"(?<![\w/.])docs/(?:zh/)?(?:\w|\\_)+\.md\b", re.ASCII)  # in Markdown

_NEEDS = re.compile(r"(?m)^interpreter\.check\((.+)\)")  # the packages without which a command prints nothing


class Command(Record):
    name: str  # of its page, such as watch.py
    typed: str  # how a user begins: "python tools/watch.py"
    file: str  # from the project's folder; of mslaunch, none
    group: str  # a key of _GROUPS
    installed: str  # how a user of the installed package begins: "mslaunch watch"


def commands() -> list[Command]:
    """The commands that have a page, in the order of the menu: those that can print their help here."""
    found = [Command(name=typed.FRONT, typed=typed.FRONT, file="", group="Launch", installed=typed.FRONT)]
    found += [
        Command(
            name=name,
            typed=f"bash scripts/{name}",
            file=f"scripts/{name}",
            group=group,
            installed=installed(f"scripts/{name}"),
        )
        for group, names in (("Launch", known.LAUNCHING), ("Before a launch", known.OTHERS))
        for name in names
    ]
    for path in known.PYTHON_COMMANDS:
        folder, name = os.path.split(path)
        if lacks(path):
            continue
        group = "Rank tables" if folder == "hccl_tools" else "A run" if name in _OF_A_RUN else "Training"
        found.append(Command(name=name, typed=f"python {path}", file=path, group=group, installed=installed(path)))
    return sorted(found, key=lambda command: list(_GROUPS).index(command.group))


def installed(file: str) -> str:
    """The installed form of the command that is this file in a checkout; empty: only a checkout has it."""
    if file in typed.WORDS or file.startswith("scripts/"):
        return f"{typed.FRONT} {typed.after_front(file)}".strip()
    return ""


def lacks(path: str) -> list[str]:
    """The packages that a Python command needs for its help and that are not here."""
    found = _NEEDS.search(Path(project.path(*path.split("/"))).read_text(encoding="utf-8"))
    named = re.findall(r'"(\w+)"', found[1]) if found else []
    return [name for name in named if not importlib.util.find_spec(name)]


def by_group(language: str) -> dict[str, list[Command]]:
    """{title of a group: its commands}, in the order of the menu."""
    return grouped((command.group if language == "en" else _GROUPS[command.group], command) for command in commands())


def path_of(command: Command, language: str) -> Path:
    """The page of a command, relative to the project's folder."""
    return FOLDERS[language] / f"{command.name}.md"


def group_titles() -> dict[str, str]:
    """{title of a group in English: that in Chinese}"""
    return dict(_GROUPS)


def pages() -> dict[Path, str]:
    """{path relative to the project's folder: the text} of each command's page, and of the lists, in both languages."""
    listed = [(command, language) for command in commands() for language in LANGUAGES]
    found = {path_of(*asked): page(*asked, text_of(*asked)) for asked in listed}
    return {**found, **{FOLDERS[language] / INDEX: _index(language) for language in LANGUAGES}}


def text_of(command: Command, language: str) -> str:
    """What `--help` of the command prints in this language."""
    front = (sys.executable, "-m", project.PACKAGE, "help", "launch")
    return known.text_of(command.file, language) if command.file else known.printed(front, language)


def _index(language: str) -> str:
    """The page that lists the commands."""
    words = _WORDS[language]
    parts = [f"# {words['title']}\n", words["about"] + "\n"]
    for group, members in by_group(language).items():
        rows = []
        for command in members:
            purpose = known.read(text_of(command, language)).purpose
            rows.append((f"[{_plain(command.name)}]({command.name}.md)", _plain(purpose)))
        parts += [f"## {group}\n", table(words["rows"].split(" | "), rows)]
    return "\n".join(parts)


def page(command: Command, language: str, text: str) -> str:
    """The page of a command in Markdown; `text` is what its `--help` prints in this language."""
    folder = str(FOLDERS[language])
    parts = list(_parts(command, language, text))
    first = next((place for place, (_, kind) in enumerate(parts) if kind == "prose"), 0)
    parts.insert(0, parts.pop(first))  # what it is for comes before the usage
    shown = [_linked(part, folder) if kind in ("prose", "options") else part for part, kind in parts]
    return "\n".join([f"# {_plain(command.name)}\n", *shown])


def _parts(command: Command, language: str, text: str) -> Iterator[tuple[str, str]]:
    """(Markdown, "prose" or another kind) of each paragraph."""
    words = _WORDS[language]
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        if _USAGE.match(paragraph):
            lines = [_typed(command, line) for line in known.read(paragraph + "\n\n-\n").usage]
            yield f"## {words['usage']}\n\n{_block([*_as_installed(command, lines), *lines])}", "usage"
        elif _OPTIONS.search(paragraph):
            head = paragraph.partition("\n")[0].rstrip(":：")
            rows = [(_shown(option), _plain(option.meaning)) for option in known.options(paragraph)]
            if rows:
                yield f"## {_heading(head)}\n\n{table(words['row'].split(' | '), rows)}", "options"
        elif _EXIT.match(paragraph):
            yield f"## {words['exit']}\n\n{_plain(_EXIT.sub('', _joined(paragraph.splitlines()), count=1))}\n", "exit"
        else:
            yield from _prose(paragraph.splitlines())


def _typed(command: Command, line: str) -> str:
    """A line of the usage as a user types it: argparse knows the file's name only."""
    name, blank, rest = line.partition(" ")
    return f"{command.typed}{blank}{rest}" if name == command.name else line


def _as_installed(command: Command, lines: Iterable[str]) -> list[str]:
    """The same lines where pip has installed the package; none where they are the same."""
    if command.installed in ("", command.typed):
        return []
    return [line.replace(command.typed, command.installed) for line in lines if command.typed in line]


def _prose(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The paragraph as text, and its indented lines as they are."""
    while lines:
        indented = lines[0].startswith("  ")
        count = next((place for place, line in enumerate(lines) if line.startswith("  ") != indented), len(lines))
        some, lines = lines[:count], lines[count:]
        yield (_block(line[2:] for line in some), "block") if indented else (_plain(_joined(some)) + "\n", "prose")


def _joined(lines: Iterable[str]) -> str:
    """The lines as one; between two Chinese characters there is no blank."""
    return re.sub(r"(?<=[\u3000-\u9fff\uff00-\uffef]) (?=[\u3000-\u9fff\uff00-\uffef])", "", " ".join(lines))


def _heading(text: str) -> str:
    """A heading of argparse begins with a small letter."""
    return _plain(text[:1].upper() + text[1:])


def _block(lines: Iterable[str]) -> str:
    return "\n".join(["```text", *lines, "```\n"])


def _shown(option: known.Option) -> str:
    """An option as Markdown code."""
    return ", ".join(f"`{f'{name} {option.value}'.strip()}`" for name in option.names).replace("|", "\\|")


def _plain(text: str) -> str:
    """The text in Markdown, as it is; what is between backquotes stays code."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(_literal(part) if place % 2 == 0 else part for place, part in enumerate(parts))


def _literal(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text.replace("&", "&amp;").replace("<", "&lt;"))


def _linked(text: str, folder: str) -> str:
    """The Markdown with links to the project's pages that it names."""

    def link(match: re.Match[str]) -> str:
        name = match[0].replace("\\", "")
        there = os.path.isfile(project.path(*name.split("/")))
        return f"[{match[0]}]({posixpath.relpath(name, folder)})" if there else match[0]

    return _OUR_PAGE.sub(link, text)
