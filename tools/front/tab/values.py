"""Completes the names of options, and their values by the placeholder that --help shows, such as FILE or a|b|c.

Hyphens and underscores in names are equivalent, and the user's spelling is kept.
"""

from __future__ import annotations

from tools.front.tab import offer, values
from tools.front.tab.offer import Offer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# {word of --help: what it is}.  Others, such as N and SECONDS, are for the user to know.
_KINDS = {
    "A": offer.FILES,
    "B": offer.FILES,
    "CHECKPOINTS": offer.FOLDERS,
    "COMMAND": offer.FILES,
    "CONFIG": offer.PROGRAMS,
    "DATA_PATH": offer.PROGRAMS,  # a folder, or the program that follows where it is left out
    "DIR": offer.FOLDERS,
    "FILE": offer.FILES,
    "FILE.tar.gz": offer.FILES,
    "FOLDER": offer.FOLDERS,
    "HOST": offer.HOSTS,
    "HOSTFILE": offer.FILES,
    "HOSTS": offer.HOSTS,
    "PATH": offer.FILES,
    "RANK_TABLE_FILE": offer.FILES,
    "SOURCE": offer.FOLDERS,
    "TARGET": offer.FOLDERS,
    "YAML": offer.CONFIGS,
}
_RUNS = ("RUN", "RUN_FOLDER")
BY_NAME = {"config": "YAML", "c": "YAML"}  # options that have a wider word in --help


def choices(takes: str) -> list[str]:
    """The words of ``a|b``, ``[a|b]`` and ``{a,b}``; none if they are kinds, as in FILE|FOLDER."""
    text = takes.strip("[]")
    if text.startswith("{"):
        return text.strip("{}").split(",")
    parts = text.split("|")
    if parts[0] == "True":  # a map is not offered
        return parts[:2]
    return [] if len(parts) == 1 or any(part in _KINDS or part in _RUNS for part in parts) else parts


def of(takes: str, begun: str, logs: str = "logs") -> Offer:
    """The values of `takes` that begin so.  logs: the folder of the runs."""
    if found := choices(takes):
        return offer.words(found, begun)
    parts = takes.strip("[]").partition(" ")[0].split("|")
    if any(part in _RUNS for part in parts):
        return offer.runs(logs, begun, offer.FILES if "FILE" in parts else offer.FOLDERS)
    kind = next((_KINDS[part] for part in parts if part in _KINDS), offer.NOTHING)
    return offer.files(kind, begun) if kind in (offer.PROGRAMS, offer.CONFIGS) else Offer(native=kind)


def plain_name(word: str) -> str:
    """The name in a word such as --log-dir=logs, with underscores: --log_dir."""
    name = word.partition("=")[0]
    return f"--{name[2:].replace('-', '_')}" if name.startswith("--") else name


def names(every: Iterable[str], begun: str) -> Offer:
    """The names that begin so; `every` has underscores."""
    found = sorted(set(every))
    if "-" in begun[2:]:
        found = [f"--{name[2:].replace('_', '-')}" for name in found if name.startswith("--")]
    return Offer(words=tuple(name for name in found if name.startswith(begun)))


def assigned(begun: str, takes: str, logs: str = "logs") -> Offer:
    """What may follow in a word such as --console=al."""
    option, _, start = begun.partition("=")
    found = values.of(takes, start, logs)
    parts = (found.words, found.runs, found.files)
    words, runs, files = (tuple(f"{option}={each}" for each in part) for part in parts)
    return found.replace(words=words, runs=runs, files=files)
