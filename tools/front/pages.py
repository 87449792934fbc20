"""Prints `mslaunch --help` and `mslaunch help TOPIC`: the commands on one screen, and the pages of docs/."""

from __future__ import annotations

import os

from hccl_tools.common import project, typed
from hccl_tools.common.language import speaks_chinese, tr
from tools.front.commands import GROUPS, groups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_WIDTH = 31  # of what is typed
# Pages for those who change this project, and those that its own files are made from.
_NOT_TOPICS = ("adding_a_rule", "architecture", "benchmarks", "compared", "extending", "index", "modules")
_SHOWN = ("one_machine", "several_machines", "kubernetes", "trainers", "restarts")


def overview() -> str:
    """Every command, on one screen of 24 lines and 80 columns."""
    front = " ".join(typed.front())
    lines = [tr("Starts distributed MindSpore trainings, watches them, and explains failures.")]
    lines.append(tr("Usage: {command} [options] PROGRAM [arguments]", command=front))
    for title, shown in GROUPS:
        lines.append(tr(title))
        lines += (f"  {each.typed:<{_WIDTH}}{tr(each.purpose)}" for each in shown)
    lines.append(tr("Help: COMMAND --help, help launch, help TOPIC, --version, --completion SHELL"))
    lines.append(tr("Topics: {names} ...", names=" ".join(_SHOWN)))
    return "\n".join(lines) + "\n"


def group(name: str) -> str:
    """The commands that begin with this word, such as ``table``."""
    front = " ".join(typed.front())
    lines = [tr("Usage: {command} ... (each has its own --help)", command=f"{front} {name} {'|'.join(groups()[name])}")]
    rows = [each for _, shown in GROUPS for each in shown if each.typed.startswith(f"{name} ")]
    lines += (f"  {each.typed:<{_WIDTH}}{tr(each.purpose)}" for each in rows)
    return "\n".join(lines) + "\n"


def topic(name: str) -> str | None:
    """The page of this name, in the user's language; None if there is none."""
    if name == "scripts":
        return "".join(_scripts())
    if name.replace("-", "_") not in topics():
        return None
    file = f"{name.replace('-', '_')}.md"
    chinese = project.path("docs", "zh", file)
    path = chinese if speaks_chinese() and os.path.exists(chinese) else project.path("docs", file)
    with open(path, encoding="utf-8") as text:
        shown = (line for line in text if not line.lstrip().startswith("<!--"))  # for tests
        return typed.as_typed("".join(shown))


def topics() -> list[str]:
    """The names of all pages."""
    try:
        found = os.listdir(project.path("docs"))
    except OSError:
        return []  # a copy without them
    return sorted(name[:-3] for name in found if name.endswith(".md") and name[:-3] not in _NOT_TOPICS)


def near(name: str) -> str:
    """What to type instead of a name that no page has."""
    from difflib import get_close_matches  # for a mistake

    found = get_close_matches(name.replace("-", "_"), topics(), 1, 0.6)
    if found:
        return tr("did you mean {option}?", option=found[0])
    return tr("pages: {names}", names=" ".join(topics()))


def _scripts() -> Iterator[str]:
    """What each script is for: the first line of its comment."""
    from tools.command import help as help_page
    from tools.command.declaration import Declaration

    for name in sorted(os.listdir(project.path("scripts"))):
        if name.endswith(".sh") and f"scripts/{name}" not in typed.WORDS:
            script = project.path("scripts", name)
            purpose = help_page.header(Declaration.from_words([f"script={script}"]))[0]
            yield f"{name[:-3]:<20}{purpose}\n"
