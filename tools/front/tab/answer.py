"""Answers a shell at TAB: ``answer.py SHELL front|file LINE REPLACED``, from tab.bash and tab.zsh.

LINE is the command line up to the cursor, as it was typed; REPLACED is the end of it that the shell replaces.  Lines of
the answer: ``native KIND``: what the shell should list itself; ``word TEXT``: a word of ours; ``name TEXT``: a name of
the user's, which the shell must quote.  zsh lists programs and configs itself.
"""

from __future__ import annotations

import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))))

from tools.front.tab import offers, typed_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def main(argv: Sequence[str]) -> int:
    """Prints the answer."""
    shell, way, line, replaced = argv
    text = "".join(f"{each}\n" for each in answer(shell, way, line, replaced))
    sys.stdout.buffer.write(os.fsencode(text))
    return 0


def answer(shell: str, way: str, line: str, replaced: str) -> Iterator[str]:
    """The lines."""
    typed = typed_words.read(line)
    found = offers.of_front(typed.words[1:], typed.last) if way == "front" else offers.of_file(typed.words, typed.last)
    kept = typed_words.cut(typed, replaced)
    yield f"native {found.native}"
    for word in found.words:
        yield f"word {word[kept:]}"
    for name in (*found.runs, *(found.files if shell == "bash" else ())):
        yield f"name {name[kept:]}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
