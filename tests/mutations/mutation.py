"""One change of one file, and the tests that must notice it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path


class NoMatch(Exception):
    """The file does not have what a mutation replaces: the mutation must follow the code."""


@dataclasses.dataclass(frozen=True)
class Mutation:
    """`replacement`, which may name groups, instead of the first match of `pattern`, or of the characters of `span`."""

    name: str
    file: str
    replacement: str
    pattern: str = ""  # a regular expression; lines are re.MULTILINE
    span: tuple[int, int] = (0, 0)
    tests: str = ""  # a regular expression for bats --filter; default: all
    variable: str = ""  # the variable that it changes

    def changed(self, root: Path) -> str:
        """The text of the changed file.  Raises NoMatch."""
        text = (root / self.file).read_text(encoding="utf-8")
        (begin, end), replacement = self.span, self.replacement
        if self.pattern:
            found = re.search(self.pattern, text, re.MULTILINE)
            if not found:
                raise NoMatch(f"{self.file}: nothing matches {self.pattern!r}, which {self.name!r} replaces")
            (begin, end), replacement = found.span(), found.expand(replacement)
        new = text[:begin] + replacement + text[end:]
        if new == text:
            raise NoMatch(f"{self.file}: {self.name!r} changes nothing")
        return new


def of_script(script: str) -> str:
    """The filter for the tests of one script: its name is their first word."""
    return f"^{re.escape(script)}[ :]"
