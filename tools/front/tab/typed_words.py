"""A command line that is not complete yet, as its words: quotes are taken away, and nothing in it is carried out."""

from __future__ import annotations

from hccl_tools.common.record import Record

_BLANK = " \t\n"


class Typed(Record):
    """The words before the cursor."""

    words: list[str]  # those that are complete, without their quotes
    last: str  # the one at the cursor, without its quotes; empty after a blank
    raw: str  # the same as it was typed


def read(line: str) -> Typed:
    """The words of the line, which ends at the cursor."""
    words: list[str] = []
    word, quote, begins, at = "", "", 0, 0
    while at < len(line):
        letter = line[at]
        if not quote and letter in _BLANK:
            if begins < at:
                words.append(word)
            word, begins = "", at + 1
        elif letter == quote:
            quote = ""
        elif not quote and letter in "'\"":
            quote = letter
        elif letter == "\\" and quote != "'":
            at += 1
            word += line[at : at + 1] if not quote or line[at : at + 1] in '"\\$`' else line[at - 1 : at + 1]
        else:
            word += letter
        at += 1
    return Typed(words=words, last=word, raw=line[begins:])


def cut(typed: Typed, replaced: str) -> int:
    """How many characters of the last word stay as they are: the shell replaces only the text `replaced` at its end.

    bash breaks words at = and :, so in ``--console=al`` it replaces ``al``.
    """
    if not typed.raw.endswith(replaced):
        return 0
    return len(read(typed.raw[: len(typed.raw) - len(replaced)]).last)
