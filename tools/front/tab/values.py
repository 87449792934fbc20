"""The values that an option or an argument takes, by the word that --help has for them, such as FILE or a|b|c."""

from __future__ import annotations

from tools.front.tab import offer
from tools.front.tab.offer import Offer

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
