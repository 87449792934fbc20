"""Training configs: read, override by ``-o key=value``, check, with the line of every mistake."""

import os
import re

import yaml

from hccl_tools.check import schema_check
from hccl_tools.common.problem import Problem
from hccl_tools.common.words import one_line
from tools.config import combinations

MAX_BYTES = 1 << 20


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # the C one is ten times faster, if it is there
    """YAML 1.1 as PyYAML reads it; but 1e-3 is the number that it looks like, as in YAML 1.2, not a text."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"[-+]?\d+[eE][-+]?\d+$"), "+-0123456789")


class ConfigError(Exception):
    """The config cannot be used: `lines` has one line a problem, each with its place."""

    def __init__(self, lines):
        super().__init__("\n".join(lines))
        self.lines = lines


class Config:
    """A parsed config: `path` as typed, `data` as dicts and lists, and where each value stands."""

    def __init__(self, path, data, node):
        self.path = path
        self.data = data
        self._node = node
        self._overridden = {}

    def get(self, dotted, default=None):
        """The value at ``system.distribute``, or `default` where there is none."""
        value = self.data
        for key in dotted.split("."):
            if not isinstance(value, dict) or key not in value:
                return default
            value = value[key]
        return value

    def override(self, assignments):
        """Applies ``key.key=value`` texts, as after -o; values are read as YAML.  Raises ConfigError."""
        for text in assignments:
            dotted, equals, value = text.partition("=")
            keys = dotted.strip().split(".")
            if not equals or not all(keys):
                raise ConfigError([f"-o {one_line(text)}: write key=value, such as scheduler.num_epochs=3"])
            try:
                parsed = yaml.load(value, Loader=_Loader)
            except yaml.YAMLError as error:
                raise ConfigError([f"-o {one_line(text)}: the value is not YAML: {_yaml_reason(error)}"]) from error
            parent = self.data
            for key in keys[:-1]:
                parent = parent.setdefault(key, {})
                if not isinstance(parent, dict):
                    raise ConfigError([f"-o {one_line(text)}: {one_line(key)} is a value, it has no keys in it"])
            parent[keys[-1]] = parsed
            self._overridden["/" + "/".join(keys)] = f"-o {one_line(text)}"

    def take_data_from(self, folder):
        """Puts `folder`, DATA_PATH of the environment, in the place of every dataset_root; -o comes after it."""
        for part in ("train", "eval"):
            section = self.get(f"{part}.dataset")
            if isinstance(section, dict):
                section["dataset_root"] = folder
                self._overridden[f"/{part}/dataset/dataset_root"] = "DATA_PATH"

    def place(self, pointer):
        """Where the value at a JSON pointer comes from: ``FILE:LINE``, or the -o (or DATA_PATH) that set it."""
        for place, origin in self._overridden.items():
            if (pointer + "/").startswith(place + "/"):
                return origin
        return f"{one_line(self.path)}:{_line(self._node, pointer)}"

    def problems(self):
        """The lines of what the schema finds, in the order of the file; else of what does not fit together."""
        found = schema_check.problems(self.data, schema_check.load_schema("train_config")) or combinations.problems(
            self.data
        )
        return [problem.line(self.place(problem.pointer)) for problem in found]


def load(path):
    """The Config in the file `path`.  Raises ConfigError."""
    shown = one_line(path)
    try:
        if os.path.isdir(path):
            raise ConfigError([f"{shown}: is a folder; name the config file in it"])
        if os.path.exists(path) and not os.path.isfile(path):
            raise ConfigError([f"{shown}: is no regular file; every rank reads it, so it must be one"])
        if os.path.getsize(path) > MAX_BYTES:
            raise ConfigError([f"{shown}: is larger than {MAX_BYTES} bytes, which no config is"])
        with open(path, encoding="utf-8") as file:
            return _parse(path, file.read())
    except FileNotFoundError as error:
        raise ConfigError([f"{shown}: no such file; a relative path counts from {one_line(os.getcwd())}"]) from error
    except OSError as error:
        raise ConfigError([f"{shown}: cannot be read: {error.strerror}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([f"{shown}: byte {error.start + 1} is not UTF-8; save the file as UTF-8"]) from error


def read(path, assignments, environ=os.environ):
    """(Config, the same filled with defaults) for a trainer: the file, DATA_PATH and -o.  Raises ConfigError."""
    config = load(path)
    if environ.get("DATA_PATH"):
        config.take_data_from(environ["DATA_PATH"])
    config.override(assignments)
    problems = config.problems()
    if problems:
        raise ConfigError(problems)
    return config, fill_defaults(config.data)


def _parse(path, text):
    shown = one_line(path)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        _refuse_duplicates(shown, node)
        data = loader.construct_document(node) if node is not None else None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{shown}:{mark.line + 1}" if mark else shown
        raise ConfigError([f"{where}: not YAML: {_yaml_reason(error)}"]) from error
    except (ValueError, RecursionError) as error:  # a date such as 2024-13-45; a thousand brackets
        raise ConfigError([f"{shown}: cannot be understood: {one_line(error)}"]) from error
    if data is None:
        raise ConfigError([f"{shown}: is empty; start from one of the files in configs/"])
    if not isinstance(data, dict):
        raise ConfigError([f"{shown}: holds no sections; start from one of the files in configs/"])
    return Config(path, data, node)


def _refuse_duplicates(shown, root):
    """YAML forbids a key that stands twice in a section; PyYAML would silently take the last."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not isinstance(node, (yaml.MappingNode, yaml.SequenceNode)):
            continue
        seen.add(id(node))  # an alias leads to the same node again
        if isinstance(node, yaml.SequenceNode):
            waiting.extend(node.value)
            continue
        lines = {}
        for key, value in node.value:
            waiting.append(value)
            line = key.start_mark.line + 1
            first = lines.setdefault(key.value, line) if isinstance(key, yaml.ScalarNode) else line
            if first != line and key.value != "<<":
                text = f"{shown}:{line}: {one_line(key.value)} stands on line {first} too; delete one of the two"
                raise ConfigError([text])


def _yaml_reason(error):
    mark = getattr(error, "problem_mark", None)
    reason = getattr(error, "problem", None) or str(error)
    return one_line(f"{reason} (column {mark.column + 1})" if mark else reason)


def _line(node, pointer):
    """The line on which the value at `pointer` stands, or the nearest thing around it that exists."""
    line = node.start_mark.line + 1
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


def fill_defaults(data):
    """`data` with the schema's defaults where the config is silent (a new dict)."""
    schema = schema_check.load_schema("train_config")

    def filled(value, rules):
        rules = schema["$defs"][rules["$ref"].rpartition("/")[2]] if "$ref" in rules else rules
        if not isinstance(value, dict):
            return value
        result = {name: filled(item, rules["properties"][name]) for name, item in value.items()}
        for name, inner in rules.get("properties", {}).items():
            if "default" in inner:
                result.setdefault(name, inner["default"])
        return result

    return filled({**data, "parallel": data.get("parallel", {})}, schema)


def not_distributed(config):
    """The Problem line of a config that is to be launched on several ranks but says it runs alone."""
    problem = Problem(
        "not-distributed",
        "/system/distribute",
        "system.distribute is not True, so every rank would train alone",
        "write `distribute: True` under `system:`",
    )
    return problem.line(config.place(problem.pointer))
