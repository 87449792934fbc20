"""Reads training configs, overrides them with ``-o key=value``, and checks them; messages name the line."""

from __future__ import annotations

import os

import yaml

from hccl_tools.check import schema_check
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.numbers import whole_number
from hccl_tools.common.problem import Problem
from hccl_tools.common.words import one_line, short
from tools.config import combinations, common_keys, recipe, yaml_text
from tools.config.unusable import Unusable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

MAX_BYTES = 1 << 20


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
        whole = common_keys.spread({"parallel": {}, **self.data})
        filled: dict[str, Any] = _filled(whole, schema, schema["$defs"])
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
            origin = f"-o {short(text)}"
            dotted, equals, value = text.partition("=")
            keys = dotted.strip().split(".")
            if not equals or not all(keys) or len(keys) > yaml_text.MOST_LEVELS:
                raise ConfigError(tr("{origin}: write key=value, such as scheduler.num_epochs=3", origin=origin))
            try:
                parsed, _ = yaml_text.read(value)
            except yaml_text.NotYaml as error:
                raise ConfigError(_useless(origin, error)) from error
            parent = self.data
            for key in keys[:-1]:
                parent = parent.setdefault(key, {})
                if not isinstance(parent, dict):
                    message = tr(
                        "{origin}: {key} is a single value, without keys of its own", origin=origin, key=one_line(key)
                    )
                    raise ConfigError(message)
            parent[keys[-1]] = parsed
            self._overridden["/" + "/".join(keys)] = origin

    def take_data_from(self, folder: str) -> None:
        """Replaces every dataset_root by `folder`, DATA_PATH of the environment; -o is applied after it."""
        for part in ("train", "eval"):
            section = self.get(f"{part}.dataset")
            if isinstance(section, dict):
                section["dataset_root"] = folder
                self._overridden[f"/{part}/dataset/dataset_root"] = "DATA_PATH"

    def held_out_by_data_path(self) -> bool:
        """Whether DATA_PATH names the folder of the held-out data."""
        return self._overridden.get("/eval/dataset/dataset_root") == "DATA_PATH"

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
        """The lines of what the schema finds, in the order of the file; otherwise of what does not fit together."""
        schema = schema_check.load_schema("train_config")
        whole = common_keys.spread(self.data)
        problems = schema_check.problems(whole, schema) or common_keys.problems(whole)
        return self.lines(problems or combinations.problems(whole) + recipe.problems(whole))


def load(path: str) -> Config:
    """The Config in the file `path`.  Raises ConfigError."""
    shown = one_line(path)
    try:
        if os.path.isdir(path):
            raise ConfigError(tr("{path}: is a folder; name the config file in it", path=shown))
        if os.path.exists(path) and not os.path.isfile(path):
            raise ConfigError(tr("{path}: is not a regular file; every rank reads it, so it must be one", path=shown))
        with open(path, "rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            message = tr("{path}: is larger than {most} bytes, too large for a config", path=shown, most=MAX_BYTES)
            raise ConfigError(message)
        return _parse(path, content.decode("utf-8"))
    except FileNotFoundError as error:
        here = one_line(os.getcwd())
        text = tr("{path}: no such file; a relative path counts from {folder}", path=shown, folder=here)
        from tools.config import near_configs  # for a mistake

        raise ConfigError(text + near_configs.question(path)) from error
    except OSError as error:
        raise ConfigError(tr("{path}: cannot be read: {reason}", path=shown, reason=strerror(error))) from error
    except UnicodeDecodeError as error:
        refused = tr("{path}: byte {number} is not UTF-8; save the file as UTF-8", path=shown, number=error.start + 1)
        raise ConfigError(refused) from error


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
        tr("system.distribute is not True, so every rank would train alone"),
        tr("write `distribute: True` under `system:`"),
    )
    return config.lines([problem])[0]


def _parse(path: str, text: str) -> Config:
    shown = one_line(path)
    try:
        data, node = yaml_text.read(text)
    except yaml_text.NotYaml as error:
        where = f"{shown}:{error.line}" if error.line else shown
        raise ConfigError(f"{where}: {error.reason}") from error
    if node is None or data is None:
        raise ConfigError(tr("{path}: is empty; start from one of the files in configs/", path=shown))
    if not isinstance(data, dict):
        raise ConfigError(tr("{path}: has no sections; start from one of the files in configs/", path=shown))
    return Config(path, data, node)


def _useless(origin: str, error: yaml_text.NotYaml) -> str:
    """The line about a value after -o that is not YAML."""
    if not error.wants_quotes:
        return tr("{origin}: the value cannot be used: {reason}", origin=origin, reason=error.reason)
    return tr(
        "{origin}: the value cannot be used: {reason}; the shell takes quotes away: -o 'KEY=\"TEXT\"'",
        origin=origin,
        reason=error.reason,
    )


def _line(node: yaml.Node, pointer: str) -> int:
    """The line of the value at `pointer`, or of the nearest thing around it that exists."""
    line: int = node.start_mark.line + 1
    for key in pointer.split("/")[1:]:
        place = whole_number(key) if isinstance(node, yaml.SequenceNode) else None
        if place is not None and place < len(node.value):
            node = node.value[place]
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
