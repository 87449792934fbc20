"""MindOCR's section `common`: values that other sections use unless they have their own."""

from __future__ import annotations

import os
import string

from hccl_tools.common import project
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.problem import Problem
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PLAIN = string.digits + string.ascii_lowercase  # MindOCR's characters where no file is named
_MOST = 1 << 20  # bytes of a file of characters
_TEXTS = ("RecDataset", "LMDBDataset")


def spread(data: dict[str, Any]) -> dict[str, Any]:
    """`data` (any dict) with the values of its section `common` in the sections that lack them, as a new value."""
    common = data.get("common")
    if not isinstance(common, dict):
        return data
    found = dict(data)
    if "num_classes" in common and isinstance(data.get("model"), dict):
        found["model"] = {"num_classes": common["num_classes"], **data["model"]}
    for part in ("train", "eval"):
        if isinstance(data.get(part), dict):
            found[part] = _part(data[part], common)
    return found


def _part(section: dict[str, Any], common: dict[str, Any]) -> dict[str, Any]:
    """The section `train` or `eval`."""
    found = dict(section)
    if "batch_size" in common and isinstance(section.get("loader"), dict):
        found["loader"] = {"batch_size": common["batch_size"], **section["loader"]}
    dataset = section.get("dataset")
    if isinstance(dataset, dict) and dataset.get("type") in _TEXTS:
        values = {key: common[key] for key in ("max_text_len",) if key in common}
        if "character_dict_path" in common and "characters" not in dataset:
            values.update(_characters(common))
        found["dataset"] = {**values, **dataset}
    return found


def _characters(common: dict[str, Any]) -> dict[str, str]:
    """{"characters": ...}; empty where the file cannot be read, see `problems`."""
    path = common["character_dict_path"]
    try:
        known = _PLAIN if path is None else _read(path)
    except (OSError, ValueError):
        return {}
    blank = " " if common.get("use_space_char") is True and " " not in known else ""
    return {"characters": known + blank}


def _read(path: object) -> str:
    """The characters of the file, one a line.  Raises OSError or ValueError."""
    with open(os.path.join(_folder(str(path)), str(path)), encoding="utf-8") as file:
        lines = file.read(_MOST).splitlines()
    if not lines or any(len(line) != 1 for line in lines):
        raise ValueError("not one character a line")
    return "".join(lines)


def _folder(path: str) -> str:
    """A relative path counts from the current folder, otherwise from the project."""
    return os.getcwd() if os.path.exists(path) else project.ROOT


def problems(data: dict[str, Any]) -> list[Problem]:
    """The parts of the section `common` (in a config that satisfies the schema) that cannot take effect."""
    common = data.get("common", {})
    found = []
    if common.get("infer_mode"):
        text = tr("infer_mode: True is for MindOCR's inference, and this trainer has none")
        found.append(Problem("key-without-effect", "/common/infer_mode", text, tr("write False, or remove it")))
    if common.get("use_space_char") and "character_dict_path" not in common:
        text = tr("use_space_char adds to the characters of character_dict_path, but that is not set")
        remedy = tr("write the blank into dataset.characters, and remove it")
        found.append(Problem("key-without-effect", "/common/use_space_char", text, remedy))
    path = common.get("character_dict_path")
    if path is not None:
        try:
            _read(path)
        except OSError as error:
            text = tr("{path} cannot be read: {reason}", path=one_line(path), reason=strerror(error))
            remedy = tr("name a file with one character a line")
            found.append(Problem("no-characters", "/common/character_dict_path", text, remedy))
        except ValueError:
            text = tr("{path} is not UTF-8 text with one character a line", path=one_line(path))
            found.append(Problem("no-characters", "/common/character_dict_path", text, tr("name another file")))
    return found
