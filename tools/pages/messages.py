"""Collects the messages of the code and of the schemas for translation, and compiles their Chinese catalogue.

python -m tools.pages.messages

Updates hccl_tools/locale/zh/LC_MESSAGES/launch.po: adds new messages without a translation, and removes those that the
code no longer has. Then writes launch.mo next to it, which the programs read.

Exit: 0 all messages have a translation, 1 some have none; stderr names each of them.
"""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Iterator

import polib

from hccl_tools.common import language, script_help
from tools.pages.commands import ROOT

CATALOGUE = os.path.join(language.LOCALE, "zh", "LC_MESSAGES", f"{language.DOMAIN}.po")
_FOLDERS = ("hccl_tools", "schemas", "tools", "scripts")
_OUTPUTS = ("diagnosis", "launch", "preflight", "rank_table_difference")  # schemas of what our commands write
# The argument of a function that is a message, or a noun in one.
PYTHON = {
    **dict.fromkeys(["tr", "refused", "misused", "faulty", "SuperPodError", "RangeError", "marked", "named"], 0),
    "count": 1,
}
# What `strerror` in hccl_tools/common/language.py finds in the catalogue: the reasons of Linux that people often meet.
_SYSTEM_HOME = "hccl_tools/common/language.py"
OF_SYSTEM = (
    "Address already in use",
    "Argument list too long",
    "Broken pipe",
    "Cannot allocate memory",
    "Cannot assign requested address",
    "Connection refused",
    "Connection reset by peer",
    "Connection timed out",
    "Device or resource busy",
    "Disk quota exceeded",
    "Exec format error",
    "File exists",
    "File name too long",
    "File too large",
    "Input/output error",
    "Invalid argument",
    "Is a directory",
    "Name or service not known",
    "Network is unreachable",
    "No address associated with hostname",
    "No route to host",
    "No space left on device",
    "No such device or address",
    "No such file or directory",
    "Not a directory",
    "Operation not permitted",
    "Operation not supported",
    "Permission denied",
    "Read-only file system",
    "Resource temporarily unavailable",
    "Stale file handle",
    "Temporary failure in name resolution",
    "Text file busy",
    "Too many levels of symbolic links",
    "Too many open files",
)
_HEADER = {"Content-Type": "text/plain; charset=UTF-8", "Content-Transfer-Encoding": "8bit", "Language": "zh"}


def files() -> Iterator[str]:
    """The files that may have messages, from the project's folder."""
    for top in _FOLDERS:
        for folder, _, names in sorted(os.walk(os.path.join(ROOT, top))):
            for name in sorted(names):
                is_input = name.endswith(".schema.json") and name.partition(".schema")[0] not in _OUTPUTS
                if name.endswith((".py", ".sh")) or is_input:
                    yield os.path.relpath(os.path.join(folder, name), ROOT)


def collected() -> dict[str, list[str]]:
    """{message: the files that have it}"""
    found = {reason: [_SYSTEM_HOME] for reason in OF_SYSTEM}
    for path in files():
        for message in _READERS[os.path.splitext(path)[1]](path):
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
        place = PYTHON.get(name or "")
        if place is not None and place < len(node.args):
            argument = node.args[place]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value
            elif isinstance(argument, ast.Name) and argument.id == "__doc__":  # the text of --help
                yield ast.get_docstring(tree, clean=False) or ""


def _of_header(path: str) -> Iterator[str]:
    """What must be translated in the header: the words before commands, and the other paragraphs, each as one line."""
    if os.path.dirname(path) != "scripts":
        return
    for paragraph in script_help.paragraphs(os.path.join(ROOT, path)):
        if commands := script_help.COMMANDS.findall(paragraph):
            yield from (words for _, words, _ in commands if words)
        else:
            yield paragraph.replace("\n", " ")


def _of_schema(path: str) -> Iterator[str]:
    """The descriptions that hccl_tools/check/schema_words.py prints."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        yield from _printed(json.load(file))


def _printed(node: object) -> Iterator[str]:
    """Those of properties that must be there, and of texts that must match a pattern."""
    if isinstance(node, dict):
        described = [node["properties"].get(name, {}) for name in node.get("required", ()) if "properties" in node]
        described += [node] * isinstance(node.get("pattern"), str)
        yield from (each["description"] for each in described if "description" in each)
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from _printed(each)


_READERS = {".py": _of_python, ".sh": _of_header, ".json": _of_schema}


def compiled(catalogue: str) -> str:
    """The file that gettext reads, next to a catalogue."""
    return f"{os.path.splitext(catalogue)[0]}.mo"


def update() -> list[str]:
    """Brings both files up to date; returns the messages that have no translation."""
    old = {entry.msgid: entry.msgstr for entry in polib.pofile(CATALOGUE)} if os.path.exists(CATALOGUE) else {}
    catalogue = polib.POFile(wrapwidth=120)
    catalogue.metadata = _HEADER
    for message, places in sorted(collected().items(), key=lambda item: (item[1], item[0])):
        catalogue.append(polib.POEntry(msgid=message, msgstr=old.get(message, ""), occurrences=[(places[0], "")]))
    catalogue.save(CATALOGUE)
    catalogue.save_as_mofile(compiled(CATALOGUE))
    return [entry.msgid for entry in catalogue if not entry.msgstr]


def main() -> int:
    """The command."""
    missing = update()
    for message in missing:
        print(f"messages: no translation in {os.path.relpath(CATALOGUE, ROOT)}: {message}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
