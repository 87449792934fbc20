"""Finds the language that the user selected on the command line, before the line is parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hccl_tools.common import language
from tools.command import table
from tools.command.defaults import VARIABLE
from tools.command.program import TAKE_FILES


def typed(words: Iterable[str]) -> str:
    """zh or en after the first --lang; empty without it."""
    return language.typed(_before_program(words))


def _before_program(words: Iterable[str]) -> Iterator[str]:
    """The words without those of a program, which begin with -m or a file that has no option before it."""
    before = ""
    for word in words:
        if word == "-m" or (word.endswith((".py", ".sh")) and word[:2] != "--" and not _takes_file(before)):
            return
        yield word
        before = word


def _takes_file(word: str) -> bool:
    """Whether it is an option whose value may look like a program."""
    return word.startswith("--") and "=" not in word and table.bare(word) in TAKE_FILES


def _leaves_defaults_out(word: str) -> bool:
    return word.startswith("--") and table.bare(word) == "no_defaults"


def exported(words: Iterable[str], environ: Mapping[str, str]) -> str:
    """What LAUNCH_LANG is for the job's processes; empty: it stays unset.

    Of English from the locale our programs learn from the locale, too, and ranks need not know.
    """
    words = list(words)
    usual = "" if any(map(_leaves_defaults_out, words)) else environ.get(VARIABLE, "")
    chosen = typed(words) or typed(usual.split()) or environ.get("LAUNCH_LANG", "")
    if chosen in language.NAMES:
        return chosen
    return "zh" if language.is_chinese({**environ, "LAUNCH_LANG": ""}) else ""
