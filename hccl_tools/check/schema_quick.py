"""Quickly accepts documents that fit a JSON Schema, for the draft 2020-12 subset that ``schemas/`` uses.

tests/hccl_tools/test_schema_check.py compares it with jsonschema.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable

from hccl_tools.common.documents import JsonObject as Schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    # A check takes a list of values and tells whether all of them are good: the 100,000 device_id of a
    # table are one list, which Python's built-in functions process.
    Check = Callable[[list[Any]], bool]

# keywords that describe and do not constrain
_ANNOTATIONS = frozenset(["$schema", "$id", "$comment", "$defs", "title", "description", "default", "examples"])


def quick_check(schema: Schema, root: Schema) -> Callable[[object], bool]:
    """A function that is True for a value that certainly satisfies `schema`, a part of the schema `root`.

    False means that only jsonschema can tell.
    """
    try:
        check = _check_for(schema, root)
    except _UnknownKeyword:
        return lambda value: False

    def surely_good(value: object) -> bool:
        try:
            return check([value])
        except _UnknownKeyword:  # behind a $ref, which is read only when it is needed
            return False

    return surely_good


class _UnknownKeyword(Exception):
    """The schema uses a keyword that the quick check does not know."""


def _check_for(schema: Schema, root: Schema) -> Check:
    checks = []
    for keyword, argument in schema.items():
        if keyword in _ANNOTATIONS:
            continue
        if keyword == "additionalProperties" and argument is False:
            checks.append(_closed(frozenset(schema["properties"])))
        elif keyword in _KEYWORDS:
            checks.append(_KEYWORDS[keyword](argument, root))
        else:
            raise _UnknownKeyword(keyword)
    if len(checks) == 1:
        return checks[0]
    return lambda values: all(check(values) for check in checks)


# A number written as 2.0 is an integer for JSON Schema and not here: jsonschema decides.  In
# Python True is an int, but its type is not; in JSON it is not a number.
_TYPES: dict[str, set[type]] = {
    "object": {dict},
    "array": {list},
    "string": {str},
    "boolean": {bool},
    "integer": {int},
    "number": {int, float},
    "null": {type(None)},
}


def _type(names: str | list[str], _: Schema) -> Check:
    types: set[type] = set().union(*(_TYPES[name] for name in ([names] if isinstance(names, str) else names)))
    if float not in types:
        return lambda values: types.issuperset(map(type, values))
    # YAML has .inf and .nan, and 1e999 is infinite in Python's JSON: see schema_words.
    return lambda values: types.issuperset(map(type, values)) and all(map(math.isfinite, _of(float, values)))


def _ref(target: str, root: Schema) -> Check:
    """Made ready when the first value comes: a schema may refer to itself."""
    ready: list[Check] = []

    def check(values: list[Any]) -> bool:
        if not ready:
            ready.append(_check_for(root["$defs"][target.rpartition("/")[2]], root))
        return ready[0](values)

    return check


def _of(kind: type | tuple[type, ...], values: list[Any]) -> list[Any]:
    """Those of the values to which a keyword for `kind` applies."""
    if {kind}.issuperset(map(type, values)):  # the usual case
        return values
    return [value for value in values if isinstance(value, kind)]


def _properties(schemas: Schema, root: Schema) -> Check:
    checks = [(name, _check_for(schema, root)) for name, schema in schemas.items()]

    def check(values: list[Any]) -> bool:
        objects = _of(dict, values)
        for name, good in checks:
            column = [value[name] for value in objects if name in value]
            if column and not good(column):
                return False
        return True

    return check


def _required(names: list[str], _: Schema) -> Check:
    wanted = set(names)
    return lambda values: all(map(wanted.issubset, _of(dict, values)))


def _closed(known: frozenset[str]) -> Check:
    return lambda values: all(map(known.issuperset, _of(dict, values)))


def _items(schema: Schema, root: Schema) -> Check:
    check = _check_for(schema, root)
    return lambda values: check([item for value in _of(list, values) for item in value])


def _pattern(regex: str, _: Schema) -> Check:
    search = re.compile(regex).search
    return lambda values: all(map(search, _of(str, values)))


def _sized(kind: type, fits: Callable[[Iterable[int], int], bool]) -> Callable[[int, Schema], Check]:
    return lambda limit, _: lambda values: fits(map(len, _of(kind, values)), limit)


def _bounded(fits: Callable[[float, float], bool]) -> Callable[[float, Schema], Check]:
    return lambda limit, _: lambda values: all(fits(value, limit) for value in _of((int, float), values))


def _of_enum(wanted: list[Any], _: Schema) -> Check:
    return lambda values: all(any(type(value) is type(w) and value == w for w in wanted) for value in values)


def _at_least(sizes: Iterable[int], limit: int) -> bool:
    return min(sizes, default=limit) >= limit


def _at_most(sizes: Iterable[int], limit: int) -> bool:
    return max(sizes, default=limit) <= limit


_KEYWORDS: dict[str, Callable[[Any, Schema], Check]] = {
    "type": _type,
    "const": lambda wanted, root: _of_enum([wanted], root),
    "enum": _of_enum,
    "required": _required,
    "properties": _properties,
    "items": _items,
    "pattern": _pattern,
    "minItems": _sized(list, _at_least),
    "maxItems": _sized(list, _at_most),
    "minLength": _sized(str, _at_least),
    "maxLength": _sized(str, _at_most),
    "minimum": _bounded(operator.ge),
    "exclusiveMinimum": _bounded(operator.gt),
    "maximum": _bounded(operator.le),
    "$ref": _ref,
}
