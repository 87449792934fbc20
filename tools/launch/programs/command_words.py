"""Programs whose arguments contain another program to start: env, nohup, a shell."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

SHELLS = ("sh", "bash", "dash", "zsh", "ksh")
ASKS = ("--version", "-V", "--help", "-h")  # with one of these as its first word a program only tells something
# Programs that start the one in their words: letters of options with a value, and how many words come before it.
_BEFORE = {
    **dict.fromkeys(("nohup", "setsid", "command"), ("", 0)),
    **{"stdbuf": ("ioe", 0), "time": ("of", 0), "exec": ("a", 0)},
    **{"nice": ("n", 0), "ionice": ("cn", 0), "numactl": ("NmCp", 0), "timeout": ("ks", 1), "taskset": ("", 1)},
}
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_FILES = ("--rcfile", "--init-file")  # long options of a shell with a value
_PYTHON = re.compile(r"python[\d.]*|pypy[\d.]*")
_CHECKS = "--check-hash-based-pycs"  # the one long option with a value
# Letters of options: with what follows it runs something else, or nothing, than a program; with a value.
_OTHER, _WITH_VALUE = "cVh?", "WX"


def is_assignment(word: str) -> bool:
    """Whether the word sets a variable before a command."""
    return bool(_ASSIGNMENT.match(word))


def program(words: Sequence[str]) -> int:
    """The position of the program, after those that only start it; the number of words: nothing is started."""
    at = 0
    while at < len(words):
        name = os.path.basename(words[at])
        if name == "env":
            at = _after_options(words, at + 1, "uC")
        elif name == "command" and {*words[at + 1 : at + 2]} & {"-v", "-V"}:
            return len(words)  # it asks where a program is
        elif name in _BEFORE:
            letters, more = _BEFORE[name]
            at = _after_options(words, at + 1, letters) + more
        elif at and is_assignment(words[at]):
            at += 1
        else:
            break
    return at


def _after_options(words: Sequence[str], at: int, letters: str) -> int:
    while at < len(words) and words[at].startswith("-"):
        at += 2 if len(words[at]) == 2 and words[at][1] in letters else 1
    return at


def is_shell(word: str) -> bool:
    """Whether the program is a shell, with or without a path."""
    return os.path.basename(word) in SHELLS


def shell_text(words: Sequence[str]) -> str | None:
    """The text that a shell in this command runs, as bash -lc TEXT does, also behind env and the like; None: none."""
    at = program(words)
    if at >= len(words) or not is_shell(words[at]):
        return None
    is_text, more = _of_shell(words[at + 1 :])
    at += 1 + more
    return words[at] if is_text and at < len(words) else None


def shell_script(words: Sequence[str]) -> int | None:
    """The place of the script that this shell runs; None: it runs none."""
    is_text, more = _of_shell(words[1:])
    return None if is_text or 1 + more >= len(words) else 1 + more


def _of_shell(words: Sequence[str]) -> tuple[bool, int]:
    """Whether a shell with these words runs a text, and the place of that text, or of the script."""
    at, is_text = 0, False
    while at < len(words) and words[at][:1] in ("-", "+"):
        word, at = words[at], at + 1
        if word in ("-", "--"):
            break
        if word.startswith("--"):
            at += word in _FILES
            continue
        is_text = is_text or (word[0] == "-" and "c" in word)
        at += word.count("o") + word.count("O")  # -o pipefail
    return is_text, at


def is_python(program: str) -> bool:
    """Whether the program is a Python, with or without a path."""
    return bool(_PYTHON.fullmatch(os.path.basename(program)))


def of_python(words: Sequence[str]) -> tuple[str, str]:
    """What Python would run: ("file", its path), ("module", its name), or nothing if it is not the user's program."""
    kind, named, _ = python_parts(words)
    return kind, named


def python_parts(words: Sequence[str]) -> tuple[str, str, int]:
    """The same, and the number of words before those of the program."""
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if word == "--":
            return ("file", words[at], at + 1) if at < len(words) else ("", "", at)
        if word == _CHECKS:
            at += 1
        elif word == "-" or word in ("--version", "--help"):
            break
        elif not word.startswith("-"):
            return "file", word, at
        elif not word.startswith("--"):
            letter, value = _last(word[1:])
            following = words[at] if at < len(words) else ""
            if letter == "m":
                return "module", value or following, at + (not value)
            if letter and letter in _OTHER:
                break
            at += letter != "" and not value
    return "", "", at


def _last(letters: str) -> tuple[str, str]:
    """The first of these letters that has a value or ends the options, and what is attached to it; empty: none does."""
    at = next((at for at, letter in enumerate(letters) if letter in f"m{_OTHER}{_WITH_VALUE}"), len(letters))
    return letters[at : at + 1], letters[at + 1 :]
