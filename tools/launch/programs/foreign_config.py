"""Reads `system.distribute` from the config of another project's trainer, without judging the config.

It may have any shape.  The notes name what nearly every trainer would reject, and a name that is nearly one of those
that MindOCR's trainers read.  A launch of our own trainer does not import this.
"""

from __future__ import annotations

import os

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import one_line, shown
from tools.config import config_file, yaml_text
from tools.launch.programs import trainer_command

_SECTIONS = (
    *("system", "common", "model", "postprocess", "metric", "loss", "loss_scaler"),
    *("scheduler", "optimizer", "parallel", "train", "eval", "predict"),
)
_ENOUGH = 3  # sections of these names: then it is a config of this kind
_ALIKE = 0.8  # of two names, as difflib measures it
_MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}  # the bytes at the beginning of a file that Windows has written


def read(path: str, arguments: list[str]) -> config_file.Config | None:
    """The config with the overrides of the trainer's arguments; None: no `system.distribute` can be read in it.

    Raises Refusal if the file cannot be read at all.
    """
    found = _load(path)
    if found is None:
        return None
    try:
        found.override(trainer_command.settings(arguments))
    except config_file.ConfigError:  # the trainer may understand it
        return None
    system = found.get("system")
    return found if isinstance(system, dict) and "distribute" in system else None


def notes(path: str) -> list[str]:
    """Notes about the config for the user."""
    found = _load(path)
    return [tr("note: {note}", note=note) for note in (_unreadable(path) if found is None else _misspelt(found))]


def _load(path: str) -> config_file.Config | None:
    try:
        found: config_file.Config = config_file.load(path)
    except config_file.ConfigError as error:
        if os.path.isfile(path) and os.access(path, os.R_OK):
            return None
        raise Refusal(REFUSED, *error.lines) from error
    return found


def _unreadable(path: str) -> list[str]:
    """The note about a file that no trainer can read as YAML; none about one that is only of another shape."""
    if not path.endswith((".yaml", ".yml")):
        return []
    with open(path, "rb") as file:
        content = file.read(config_file.MAX_BYTES)
    place, reason = one_line(path), ""
    try:
        text = content.decode("utf-8")
        if not text.strip():
            reason = tr("is empty")
        elif fault := yaml_text.fault(text):
            place, reason = f"{place}:{fault.line}" if fault.line else place, fault.reason
    except UnicodeDecodeError as error:
        coding = next((name for mark, name in _MARKS.items() if content.startswith(mark)), "")
        reason = tr("byte {number} is not UTF-8", number=error.start + 1)
        if coding:
            reason = tr("is {coding}, not UTF-8", coding=coding)
    if not reason:
        return []
    return [tr("{place}: {reason}; few trainers can read it as it is: correct it", place=place, reason=reason)]


def _misspelt(config: config_file.Config) -> list[str]:
    """The lines about names that are nearly those of sections, or of `distribute`."""
    found = []
    known = [name for name in _SECTIONS if name in config.data]
    for key, value in config.data.items():
        near = _near(key, [name for name in _SECTIONS if name not in config.data])
        # One name alone may well be what another trainer calls its own; `distribute` states whose it is.
        if near and isinstance(value, dict) and (len(known) >= _ENOUGH or (near == "system" and "distribute" in value)):
            found.append(_question(config, f"/{key}", key, near))
    system = config.data.get("system")
    if isinstance(system, dict) and "distribute" not in system:
        for key in system:
            if key != "distributed" and _near(key, ["distribute"]):
                found.append(_question(config, f"/system/{key}", key, "distribute"))
    return found


def _question(config: config_file.Config, pointer: str, key: str, near: str) -> str:
    return tr('{place}: {key}: did you mean "{near}"?', place=config.place(pointer), key=shown(key), near=near)


def _near(key: object, names: list[str]) -> str:
    """The one of the names that the key nearly is."""
    if not isinstance(key, str) or key in names or key in _SECTIONS:
        return ""
    from difflib import get_close_matches  # 2 ms, for few configs

    return next(iter(get_close_matches(key, names, 1, _ALIKE)), "")
