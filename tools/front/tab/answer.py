"""Answers a shell at TAB: ``answer.py SHELL front|file LINE REPLACED``, from tab.bash and tab.zsh.

LINE is the command line up to the cursor, as it was typed.  REPLACED is the end of it that the shell replaces.  Lines
of the answer: ``native KIND``: what the shell should list itself; ``word TEXT``: a word of ours; ``name TEXT``: a name
of the user's, which the shell must quote. zsh lists programs and configs itself.

The line is not complete yet: quotes are removed, and nothing in it is executed.
"""

from __future__ import annotations

import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))))

from hccl_tools.common.record import Record
from tools.front.tab import offers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_BLANK = " \t\n"


def main(argv: Sequence[str]) -> int:
    """Prints the answer."""
    shell, way, line, replaced = argv
    text = "".join(f"{each}\n" for each in answer(shell, way, line, replaced))
    sys.stdout.buffer.write(os.fsencode(text))
    return 0


def answer(shell: str, way: str, line: str, replaced: str) -> Iterator[str]:
    """The lines."""
    typed = read(line)
    found = offers.of_front(typed.words[1:], typed.last) if way == "front" else offers.of_file(typed.words, typed.last)
    kept = cut(typed, replaced)
    yield f"native {found.native}"
    for word in found.words:
        yield f"word {word[kept:]}"
    for name in (*found.runs, *(found.files if shell == "bash" else ())):
        yield f"name {name[kept:]}"


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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
