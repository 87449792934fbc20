"""The language that the user has chosen on the command line, which must be known before it is read."""

from __future__ import annotations

from hccl_tools.common import language

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


def typed(words: Iterable[str]) -> str:
    """zh or en after the first --lang; empty without it."""
    return language.typed(_before_program(words))


def _before_program(words: Iterable[str]) -> Iterator[str]:
    """The words without those of a program, which begin with -m or a file that has no option before it."""
    before = ""
    for word in words:
        if word == "-m" or (word.endswith((".py", ".sh")) and not before.startswith("--")):
            return
        yield word
        before = word


def exported(words: Iterable[str], environ: Mapping[str, str]) -> str:
    """What LAUNCH_LANG is for the job's processes; empty: it stays unset.

    Of English from the locale our programs learn from the locale, too, and ranks need not know.
    """
    chosen = typed(words) or environ.get("LAUNCH_LANG", "")
    if chosen in language.NAMES:
        return chosen
    return "zh" if language.is_chinese({**environ, "LAUNCH_LANG": ""}) else ""
