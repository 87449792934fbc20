"""Reads training configs, overrides them by ``-o key=value``, and checks them; mistakes have their lines."""

from __future__ import annotations

import os
import re

import yaml

from hccl_tools.check import schema_check
from hccl_tools.common.problem import Problem
from hccl_tools.common.words import one_line
from tools.config import combinations
from tools.config.unusable import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C one is ten times faster, if it is there

MAX_BYTES = 1 << 20


class _Loader(_Base):
    """YAML 1.1 as PyYAML reads it; but 1e-3 is the number that it looks like, as in YAML 1.2, not a text."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+$"), list("+-0123456789"))


class ConfigError(Unusable):
    """The config cannot be used: one line per problem, each with its place."""


class Config:
    """A parsed config: `path` as typed, `data` as dicts and lists, and the place of each value in the file."""

    def __init__(self, path: str, data: dict[str, Any], node: yaml.Node) -> None:
        self.path = path
        self.data = data
        self._node = node
        self._overridden: dict[str, str] = {}

    @property
    def filled(self) -> dict[str, Any]:
        """The data with the schema's defaults where the config has no value; for a config without problems."""
        schema = schema_check.load_schema("train_config")
        filled: dict[str, Any] = _filled({"parallel": {}, **self.data}, schema, schema["$defs"])
        return filled

    def get(self, dotted: str, default: object = None) -> Any:
        """The value at ``system.distribute``, or `default` where there is none."""
        value: Any = self.data
        for key in dotted.split("."):
            if not isinstance(value, dict) or key not in value:
                return default
            value = value[key]
        return value

    def override(self, assignments: Iterable[str]) -> None:
        """Applies ``key.key=value`` texts, as after -o; values are read as YAML.  Raises ConfigError."""
        for text in assignments:
            origin = f"-o {one_line(text)}"
            dotted, equals, value = text.partition("=")
            keys = dotted.strip().split(".")
            if not equals or not all(keys):
                raise ConfigError(f"{origin}: write key=value, such as scheduler.num_epochs=3")
            try:
                parsed = yaml.load(value, Loader=_Loader)
            except yaml.YAMLError as error:
                raise ConfigError(f"{origin}: the value is not YAML: {_yaml_reason(error)}") from error
            parent = self.data
            for key in keys[:-1]:
                parent = parent.setdefault(key, {})
                if not isinstance(parent, dict):
                    raise ConfigError(f"{origin}: {one_line(key)} is a value, it has no keys in it")
            parent[keys[-1]] = parsed
            self._overridden["/" + "/".join(keys)] = origin

    def take_data_from(self, folder: str) -> None:
        """Replaces every dataset_root by `folder`, DATA_PATH of the environment; -o is applied after it."""
        for part in ("train", "eval"):
            section = self.get(f"{part}.dataset")
            if isinstance(section, dict):
                section["dataset_root"] = folder
                self._overridden[f"/{part}/dataset/dataset_root"] = "DATA_PATH"

    def place(self, pointer: str) -> str:
        """Where the value at a JSON pointer comes from: ``FILE:LINE``, or the -o (or DATA_PATH) that set it."""
        for place, origin in self._overridden.items():
            if (pointer + "/").startswith(place + "/"):
                return origin
        return f"{one_line(self.path)}:{_line(self._node, pointer)}"

    def lines(self, problems: Iterable[Problem]) -> list[str]:
        """A line for each of the problems, with its place."""
        return [problem.line(self.place(problem.pointer)) for problem in problems]

    def problems(self) -> list[str]:
        """The lines of what the schema finds, in the order of the file; else of what does not fit together."""
        schema = schema_check.load_schema("train_config")
        return self.lines(schema_check.problems(self.data, schema) or combinations.problems(self.data))


def load(path: str) -> Config:
    """The Config in the file `path`.  Raises ConfigError."""
    shown = one_line(path)
    try:
        if os.path.isdir(path):
            raise ConfigError(f"{shown}: is a folder; name the config file in it")
        if os.path.exists(path) and not os.path.isfile(path):
            raise ConfigError(f"{shown}: is not a regular file; every rank reads it, so it must be one")
        if os.path.getsize(path) > MAX_BYTES:
            raise ConfigError(f"{shown}: is larger than {MAX_BYTES} bytes, too large for a config")
        with open(path, encoding="utf-8") as file:
            return _parse(path, file.read())
    except FileNotFoundError as error:
        raise ConfigError(f"{shown}: no such file; a relative path counts from {one_line(os.getcwd())}") from error
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{shown}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from error


def read(path: str, assignments: Iterable[str], environ: Mapping[str, str] = os.environ) -> Config:
    """The Config for a trainer: the file, DATA_PATH and -o, without problems.  Raises ConfigError."""
    config = load(path)
    if environ.get("DATA_PATH"):
        config.take_data_from(environ["DATA_PATH"])
    config.override(assignments)
    problems = config.problems()
    if problems:
        raise ConfigError(*problems)
    return config


def not_distributed(config: Config) -> str:
    """The line about a config of a launch on several ranks whose ranks would run alone."""
    problem = Problem(
        "not-distributed",
        "/system/distribute",
        "system.distribute is not True, so every rank would train alone",
        "write `distribute: True` under `system:`",
    )
    return config.lines([problem])[0]


def _parse(path: str, text: str) -> Config:
    shown = one_line(path)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        _refuse_duplicates(shown, node)
        data = loader.construct_document(node) if node is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{shown}:{mark.line + 1}" if mark else shown
        raise ConfigError(f"{where}: not YAML: {_yaml_reason(error)}") from error
    except (ValueError, RecursionError) as error:  # a date such as 2024-13-45; a thousand brackets
        raise ConfigError(f"{shown}: cannot be understood: {one_line(error)}") from error
    if node is None or data is None:
        raise ConfigError(f"{shown}: is empty; start from one of the files in configs/")
    if not isinstance(data, dict):
        raise ConfigError(f"{shown}: has no sections; start from one of the files in configs/")
    return Config(path, data, node)


def _refuse_duplicates(shown: str, root: yaml.Node | None) -> None:
    """YAML forbids a key that a section has twice; PyYAML would silently take the last."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, (yaml.MappingNode, yaml.SequenceNode)):
            continue
        seen.add(id(node))  # an alias leads to the same node again
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
            continue
        lines: dict[str, int] = {}
        for key, value in node.value:
            waiting.append(value)
            line = key.start_mark.line + 1
            first = lines.setdefault(key.value, line) if isinstance(key, yaml.ScalarNode) else line
            if first != line and key.value != "<<":
                raise ConfigError(
                    f"{shown}:{line}: {one_line(key.value)} is on line {first} too; delete one of the two"
                )


def _yaml_reason(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error)
    return one_line(f"{reason} (column {mark.column + 1})" if mark else reason)


def _line(node: yaml.Node, pointer: str) -> int:
    """The line of the value at `pointer`, or of the nearest thing around it that exists."""
    line: int = node.start_mark.line + 1
    for key in pointer.split("/")[1:]:
        if isinstance(node, yaml.SequenceNode) and key.isdecimal() and int(key) < len(node.value):
            node = node.value[int(key)]
            line = node.start_mark.line + 1
            continue
        if not isinstance(node, yaml.MappingNode):
            break
        entries = {k.value: (k, v) for k, v in node.value if isinstance(k, yaml.ScalarNode)}
        if key not in entries:
            break
        line, node = entries[key][0].start_mark.line + 1, entries[key][1]
    return line


def _filled(value: Any, rules: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """`value` with the defaults of the schema `rules`, as a new value."""
    rules = definitions[rules["$ref"].rpartition("/")[2]] if "$ref" in rules else rules
    if not isinstance(value, dict):
        return value
    known = rules["properties"]
    given = {name: _filled(item, known[name], definitions) for name, item in value.items()}
    return {**{name: inner["default"] for name, inner in known.items() if "default" in inner}, **given}
