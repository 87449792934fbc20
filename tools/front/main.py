"""Entry point of mslaunch: finds the command for its arguments, and replaces itself with it."""

from __future__ import annotations

import os
import runpy
import sys

from hccl_tools.common import project, typed
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.refusal import USAGE
from hccl_tools.common.typed import FRONT
from hccl_tools.machine import interpreter
from tools.front import commands
from tools.output.voice import Voice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_REFUSED = 78


def main(argv: Sequence[str]) -> int:
    """The exit code of ``mslaunch WORD...``; argv: as sys.argv, with the file of mslaunch at its front."""
    program, words = argv[0], list(argv[1:])
    try:
        return _main(program, words)
    except KeyboardInterrupt:
        return 130


def _main(program: str, words: list[str]) -> int:
    interpreter.python(FRONT, _REFUSED)
    typed.use(program, ())
    if not words:
        return _refuse(tr("a program, a config or a command is missing"))
    if not sys.platform.startswith("linux"):
        return _refuse(tr("this is {system}; Linux is needed", system=sys.platform), _REFUSED)
    if words[0].partition("=")[0] in ("-h", "--help", "help", "--version", "--completion"):
        return _about(words)
    file, name, number = commands.find(words)
    if file == "?":
        return _half(name, words[1:])
    typed.use(program, name.split())
    if file and not file.startswith("scripts/"):
        return _become(file, words[number:])
    if file == "scripts/doctor.sh":
        return _doctor(words[number:])
    if not file and words[number:] and (near := _nearly(words[number])):
        return _refuse(near)
    from tools.front import launching

    return launching.run(program, file, words[number:])


def _about(words: list[str]) -> int:
    """What is about mslaunch itself."""
    first, _, value = words[0].partition("=")
    if first == "--completion":
        return _completion(words)
    if first == "--version":
        from tools.command import help as help_page

        return _print(help_page.version())
    return _help([*filter(None, [value]), *words[1:]])


def _become(file: str, words: list[str]) -> int:
    """Runs a command that is a file of Python, as if it were typed."""
    path = project.path(file)
    sys.argv = [path, *words]
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            return _refuse(ended.code)
        return ended.code or 0
    return 0


def _doctor(words: list[str]) -> int:
    """The page about this machine, for which scripts/doctor.sh tells its own version of bash."""
    from hccl_tools.machine import programs
    from tools.doctor import main as doctor

    answer = programs.ask(["bash", "-c", 'printf %s "$BASH_VERSION"'], 20)
    script = project.path("scripts", "doctor.sh")
    return doctor.main([f"script={script}", f"shell={answer.stdout if answer.status == 0 else ''}", "--", *words])


def _half(group: str, words: list[str]) -> int:
    """A command of two words, of which the second is missing or none of ours."""
    if words and words[0] in ("-h", "--help"):
        from tools.front import pages

        return _print(pages.group(group))
    choices = ", ".join(commands.groups()[group])
    if not words or words[0].startswith("-"):
        return _refuse(tr("{group}: add a command: {choices}", group=group, choices=choices))
    return _refuse(tr("{group} {word}: write one of {choices}", group=group, word=quote(words[0]), choices=choices))


def _nearly(word: str) -> str:
    """The message about a word that names neither a program nor a file, but nearly a command; otherwise empty."""
    from hccl_tools.machine import programs

    if word.startswith("-") or "/" in word or "." in word or os.path.exists(word) or programs.on_path(word):
        return ""
    from difflib import get_close_matches  # for a mistake

    near = get_close_matches(word, commands.names(), 1)
    if not near:
        return ""
    text = tr("{word}: no such command, program on PATH or file", word=quote(word))
    return text + tr("; did you mean {option}?", option=f"{FRONT} {near[0]}")


def _help(words: list[str]) -> int:
    from tools.front import pages

    words = [word for word in words if word not in ("-h", "--help")]
    if not words or words[0] == "help" or words[0].startswith("-"):
        return _print(pages.overview())
    topic = words[0] if len(words) == 1 else " ".join(words)
    file, name, number = commands.find(words)
    if topic in ("launch", "options"):
        from tools.front import launching

        return launching.run(sys.argv[0], "", ["--help"])
    if file and number == len(words):
        return _main(sys.argv[0], [*name.split(), "--help"])
    text = pages.topic(topic)
    if text is None:
        return _refuse(tr("help {topic}: no such page; {near}", topic=quote(topic), near=pages.near(topic)))
    return _print(text)


def _completion(words: list[str]) -> int:
    from tools.front.tab import script

    _, equals, shell = words[0].partition("=")
    asked = [shell, *words[1:]] if equals else words[1:]
    if len(asked) != 1 or asked[0] not in script.SHELLS:
        return _refuse(tr("--completion: write bash or zsh"))
    return _print(script.text(asked[0]))


def _print(text: str) -> int:
    from tools.launch import launcher

    return launcher.show(text, Voice(FRONT))


def _refuse(text: str, status: int = USAGE) -> int:
    Voice(FRONT).say(tr("{mistake}; see: {command} --help", mistake=text, command=" ".join(map(quote, typed.front()))))
    return status
