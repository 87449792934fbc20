"""Collects the messages of the code for translation, and compiles their Chinese catalogue.

python -m tools.pages.messages

Updates hccl_tools/locale/zh/LC_MESSAGES/launch.po: new messages come without a translation, those that the code no
longer has go. Then writes launch.mo beside it, which the programs read, and hccl_tools/locale/zh/help: the headers of
the scripts, which --help prints.

Exit: 0 all messages have a translation, 1 some have none; each is named on stderr.
"""

from __future__ import annotations

import ast
import itertools
import os
import re
import sys
from collections.abc import Iterator

import polib

from hccl_tools.common import language
from tools.pages.commands import ROOT

CATALOGUE = os.path.join(language.LOCALE, "zh", "LC_MESSAGES", f"{language.DOMAIN}.po")
HELP = os.path.join(language.LOCALE, "zh", "help")
# A line of a header that has a command: blanks, the words before it, and the rest.
_COMMANDS = re.compile(r"^( *)(Usage:|Example:|on [^:]+:)?( +\S.*|$)", re.MULTILINE)
_FOLDERS = ("hccl_tools", "tools", "scripts")
# The argument of a function that is a message, or a noun in one.
_PYTHON = {"tr": 0, "marked": 0, "count": 1, "named": 0}
_HEADER = {"Content-Type": "text/plain; charset=UTF-8", "Content-Transfer-Encoding": "8bit", "Language": "zh"}


def files() -> Iterator[str]:
    """The files that may have messages, from the project's folder."""
    for top in _FOLDERS:
        for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
            for name in sorted(names):
                if name.endswith((".py", ".sh")):
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def collected() -> dict[str, list[str]]:
    """{message: the files that have it}"""
    found: dict[str, list[str]] = {}
    for path in files():
        for message in _of_python(path) if path.endswith(".py") else _of_header(path):
            places = found.setdefault(message, [])
            if path not in places:
                places.append(path)
    return found


def _of_python(path: str) -> Iterator[str]:
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        tree = ast.parse(file.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and "Remedy: " in (text := ast.get_docstring(node) or ""):  # of a rule
            yield " ".join(text.partition("Remedy: ")[2].split()).rstrip(".")
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", None) or getattr(node.func, "id", None)
        place = _PYTHON.get(name or "")
        if place is not None and place < len(node.args):
            argument = node.args[place]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value
            elif isinstance(argument, ast.Name) and argument.id == "__doc__":  # the text of --help
                yield ast.get_docstring(tree, clean=False) or ""


def header(path: str) -> list[str]:
    """The paragraphs of the comment at the beginning of a script, which --help prints; of other files none."""
    if os.path.dirname(path) != "scripts":
        return []
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        lines = itertools.takewhile(lambda line: line.startswith("#"), file.read().splitlines()[1:])
    return "\n".join(line[2:] for line in lines).split("\n\n")


def _of_header(path: str) -> Iterator[str]:
    """What must be translated in the header: the words before commands, and the other paragraphs, each as one line."""
    for paragraph in header(path):
        if commands := _COMMANDS.findall(paragraph):
            yield from (words for _, words, _ in commands if words)
        else:
            yield paragraph.replace("\n", " ")


def translated_header(path: str, chinese: dict[str, str]) -> str:
    """The file that --help prints in Chinese instead of the header."""
    found = []
    for paragraph in header(path):
        if _COMMANDS.search(paragraph):
            text = _COMMANDS.sub(
                lambda part: part[1] + (chinese.get(part[2] or "") or part[2] or "") + part[3], paragraph
            )
        else:
            line = paragraph.replace("\n", " ")
            text = chinese.get(line) or line
        found.append(text)
    return "".join(f"# {line}".rstrip() + "\n" for line in "\n\n".join(found).splitlines())


def help_files(chinese: dict[str, str]) -> dict[str, str]:
    """{path of a file: its text} of all scripts."""
    return {
        os.path.join(HELP, os.path.basename(path)[: -len(".sh")] + ".txt"): translated_header(path, chinese)
        for path in files()
        if header(path)
    }


def update() -> list[str]:
    """Brings both files up to date; returns the messages that have no translation."""
    old = {entry.msgid: entry.msgstr for entry in polib.pofile(CATALOGUE)} if os.path.exists(CATALOGUE) else {}
    catalogue = polib.POFile(wrapwidth=120)
    catalogue.metadata = _HEADER
    for message, places in sorted(collected().items(), key=lambda item: (item[1], item[0])):
        catalogue.append(polib.POEntry(msgid=message, msgstr=old.get(message, ""), occurrences=[(places[0], "")]))
    catalogue.save(CATALOGUE)
    catalogue.save_as_mofile(CATALOGUE.replace(".po", ".mo"))
    os.makedirs(HELP, exist_ok=True)
    wanted = help_files({entry.msgid: entry.msgstr for entry in catalogue})
    for name in os.listdir(HELP):
        if os.path.join(HELP, name) not in wanted:  # of a script that is gone
            os.remove(os.path.join(HELP, name))
    for path, text in wanted.items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    return [entry.msgid for entry in catalogue if not entry.msgstr]


def main() -> int:
    """The command."""
    missing = update()
    for message in missing:
        print(f"messages: no translation in {os.path.relpath(CATALOGUE, ROOT)}: {message}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
