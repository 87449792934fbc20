"""Names of options: hyphens and underscores in them are the same, and the user's way to type them is kept."""

from __future__ import annotations

from tools.front.tab import values
from tools.front.tab.offer import Offer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def plain(word: str) -> str:
    """The name in a word such as --log-dir=logs, with underscores: --log_dir."""
    name = word.partition("=")[0]
    return f"--{name[2:].replace('-', '_')}" if name.startswith("--") else name


def offered(every: Iterable[str], begun: str) -> Offer:
    """The names that begin so; `every` has underscores."""
    found = sorted(set(every))
    if "-" in begun[2:]:
        found = [f"--{name[2:].replace('_', '-')}" for name in found if name.startswith("--")]
    return Offer(words=tuple(name for name in found if name.startswith(begun)))


def value(begun: str, takes: str, logs: str = "logs") -> Offer:
    """What may follow in a word such as --console=al."""
    option, _, start = begun.partition("=")
    found = values.of(takes, start, logs)
    parts = (found.words, found.runs, found.files)
    words, runs, files = (tuple(f"{option}={each}" for each in part) for part in parts)
    return found.replace(words=words, runs=runs, files=files)
