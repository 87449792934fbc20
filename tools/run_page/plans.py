"""The plan and the config of a run as flat texts: without secrets, and without what differs between any two runs."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter

from hccl_tools.common import documents
from hccl_tools.common.words import ranges, some
from tools.launch.programs import trainer_command
from tools.run_page.markup import whole
from tools.run_page.surroundings import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from tools.run_page.reading import RunData
    from tools.run_page.surroundings import Surroundings

RANKS, HOSTS, TARGET = "ranks", "hosts", "device_target"  # names of the plan
GIVEN = ""  # the value of an option that has none
_OF_RUN = ("LAUNCH_JOB", "LOG_DIR")  # differ between runs by nature
_MOST_CONFIG = 1 << 20  # bytes
_MOST_HOSTS = 4  # names
_LEAST_ID = 6  # characters: a shorter one is in other words, too
# What differs between any two runs: ids, moments, addresses, and ports.
_ID = re.compile(r"[\w.]+(?:-[\w.]+)*-\d{8}T\d{6}Z-\d+")
_MOMENT = re.compile(r"\b\d{4}-?\d\d-?\d\d[T ]\d\d:?\d\d(?::?\d\d)?(?:[.,]\d+)?Z?")
_ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\w.])")
_HOST_AND_PORT = re.compile(r"(?<=[\w…]):\d{4,5}\b")
_NAME_OF_PORT = re.compile(r"(?:^|[\W_])ports?$", re.IGNORECASE)
_GONE = "…"


def plan_of(data: RunData, around: Surroundings) -> dict[str, str]:
    """The launcher's input, and what all ranks share."""
    launch = data.launch
    found = {key: launch[key] for key in ("script", TARGET) if isinstance(launch.get(key), str)}
    if data.ranks:
        found[RANKS] = str(len(data.ranks))
    names = sorted({rank.host for rank in data.ranks if rank.host}) or _texts([launch.get("host")])
    found.update({HOSTS: str(len(names)), "names of hosts": some(names, _MOST_HOSTS)} if names else {})
    devices = {rank.device for rank in data.ranks if rank.device is not None}
    if devices != set(range(len(devices))):  # else they follow from the ranks
        found["devices"] = ranges(devices)
    for key in ("trainer", "scheduler", "typed"):
        for name, value in _options(key, _masked(_command(launch.get(key)), around)):
            found.setdefault(name, value)
    for name, value in around.exports.items():
        if name not in _OF_RUN:
            found[name] = shown(name, value) or ""
    return _without_its_own(data, {name: _masked(value, around) for name, value in found.items()})


def config_of(data: RunData, around: Surroundings) -> dict[str, str] | None:
    """The config as it is now, since a run keeps no copy, with what -o set; None without one that can be read."""
    folder, program = data.launch.get("folder"), data.run.program
    path = os.path.join(folder, program) if isinstance(folder, str) and program else ""
    if not path.endswith((".yaml", ".yml")):
        return None
    from tools.config import config_file

    try:
        documents.refuse_special(path)
        if os.path.getsize(path) > _MOST_CONFIG:
            return None
        config = config_file.load(path)
        config.override(trainer_command.settings(documents.texts(data.launch, "trainer")))
        flat = _flat(config.data, "")
    except (OSError, ValueError, config_file.ConfigError):
        return None
    return _without_its_own(data, {name: _masked(value, around) for name, value in flat.items()})


def _flat(value: object, name: str) -> dict[str, str]:
    if not isinstance(value, dict):
        return {name: shown(name.rpartition(".")[2], str(value)) or ""}
    found: dict[str, str] = {}
    for key, inner in value.items():
        found.update(_flat(inner, f"{name}.{key}" if name else str(key)))
    return found


def _masked(text: str, around: Surroundings) -> str:
    counts: Counter[str] = Counter()
    return around.masker.text(whole(text), counts)


def _texts(values: list[Any]) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def _command(value: object) -> str:
    """The words of a command as text for a shell."""
    return value if isinstance(value, str) else " ".join(map(shlex.quote, _texts(_list(value))))


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# --- a command by its options -----------------------------------------------------------------------------------------


def _options(key: str, text: str) -> Iterator[tuple[str, str]]:
    """(name, value) of each option in a command; the program has the name `key`, and other words "words"."""
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that is open
        yield key, text
        return
    files = [number for number, word in enumerate(words) if word.endswith(".py")]
    program = (files[0] if files else 0) + 1 if words else 0
    if key != "typed" and program:  # of what was typed it is the script
        yield key, " ".join(words[:program])
    alone: list[str] = []
    for name, value in _pairs(words[program:]):
        if name is None:
            alone.append(value)
        else:
            yield name, shown(re.split(r"[ .-]", name)[-1], value) or GIVEN
    if alone and key != "typed":  # of what was typed it is the config, which the trainer has, too
        yield "words", " ".join(alone)


def _pairs(words: list[str]) -> Iterator[tuple[str | None, str]]:
    """(option, value) of each; None for a word alone.  -o takes any number of KEY=VALUE, which count one by one."""
    sets, rest = None, list(words)
    while rest:
        word = rest.pop(0)
        key, assigns, assigned = word.partition("=")
        if sets and assigns and not key.startswith("-"):
            yield f"{sets} {key}", assigned
            continue
        sets = word if word in trainer_command.OVERRIDES else None
        if sets:
            continue
        if not word.startswith("-"):
            yield None, word
        elif assigns or not rest or rest[0].startswith("-"):
            yield key, assigned
        else:
            yield word, rest.pop(0)


# --- what differs between any two runs --------------------------------------------------------------------------------


def _without_its_own(data: RunData, flat: dict[str, str]) -> dict[str, str]:
    """The texts without the folders, ids, moments, addresses and ports of this run."""
    launch = data.launch
    folders = {data.folder, *_texts([launch.get("folder"), launch.get("run_dir")])}
    own = sorted((name.rstrip("/") for name in folders if os.path.isabs(name)), key=len, reverse=True)
    places = "|".join(re.escape(name) for name in own if name)
    inside = re.compile(rf"(?<![\w./-])(?:{places})(?:/+|(?![\w.-]))") if places else None
    job = documents.text(launch.get("exports"), "LAUNCH_JOB") or ""
    return {name: _plain(name, value, inside, job) for name, value in flat.items()}


def _plain(name: str, value: str, inside: re.Pattern[str] | None, job: str) -> str:
    if value.isdecimal():
        return _GONE if _NAME_OF_PORT.search(name) else value
    if len(job) >= _LEAST_ID:
        value = value.replace(job, _GONE)
    if inside and value:
        value = inside.sub("", value) or "."
    for always in (_ID, _MOMENT, _ADDRESS, _HOST_AND_PORT):
        value = always.sub(_GONE, value)
    return value
