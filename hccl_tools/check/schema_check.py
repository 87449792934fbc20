"""Structure against the JSON Schemas in ``schemas/``: a quick yes, or every reason for a no.

jsonschema is the judge, but importing it takes longer than starting eight ranks.  So a document is
first put to `accepts`, which reads the same schema file and can only say yes; whatever it does not
accept goes to jsonschema, which has the last word and finds the reasons.
tests/python/test_schema_check.py holds the two against each other.
"""

import json
import os
import re
from functools import cache

SCHEMA_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))), "schemas")

# keywords that describe and do not constrain
_ANNOTATIONS = frozenset(["$schema", "$id", "$comment", "$defs", "title", "description", "default", "examples"])


def load_schema(name):
    """The schema `name` (``rank_table_v1.0``) as a dict."""
    with open(os.path.join(SCHEMA_FOLDER, name + ".schema.json"), encoding="utf-8") as file:
        return json.load(file)


def problems_by_name(document, name):
    """`problems` for the schema `name`, which is made ready once for all documents of a process."""
    schema, good = _ready(name)
    return [] if good(document) else _explained(document, schema)


@cache
def _ready(name):
    schema = load_schema(name)
    return schema, quick_check(schema, schema)


def problems(document, schema):
    """A list of Problem, sorted by place; empty when `document` has the structure of `schema`."""
    return [] if accepts(document, schema) else _explained(document, schema)


def _explained(document, schema):
    from hccl_tools.check import schema_words  # brings jsonschema along: 0.1 s

    return schema_words.problems(document, schema)


def accepts(document, schema):
    """True when `document` surely satisfies `schema`; False means: ask jsonschema."""
    return quick_check(schema, schema)(document)


def quick_check(schema, root):
    """`accepts` for a part of the schema `root`, ready to be called on many values."""
    try:
        check = _check_for(schema, root)
    except _UnknownKeyword:
        return lambda value: False

    def surely_good(value):
        try:
            return check([value])
        except _UnknownKeyword:  # behind a $ref, which is looked at only when it is needed
            return False

    return surely_good


class _UnknownKeyword(Exception):
    """The schema uses a keyword that the quick check does not know."""


# A check takes a list of values and says whether all of them are good: the 100,000 device_id of a
# table are one list, over which Python's built-in functions go.


def _check_for(schema, root):
    """A function values -> bool for one (sub)schema of the draft 2020-12 subset that we use."""
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


# A number written as 2.0 is an integer for JSON Schema and not here: jsonschema settles it.  In
# Python True is an int, but its type is not; in JSON it is no number at all.
_TYPES = {
    "object": {dict},
    "array": {list},
    "string": {str},
    "boolean": {bool},
    "integer": {int},
    "number": {int, float},
    "null": {type(None)},
}


def _type(names, _):
    types = set().union(*(_TYPES[name] for name in ([names] if isinstance(names, str) else names)))
    return lambda values: types.issuperset(map(type, values))


def _ref(target, root):
    """Made ready when the first value comes: a schema may refer to itself."""
    ready = []

    def check(values):
        if not ready:
            ready.append(_check_for(root["$defs"][target.rpartition("/")[2]], root))
        return ready[0](values)

    return check


def _of(kind, values):
    """Those of the values that a keyword for `kind` has a say about."""
    if {kind}.issuperset(map(type, values)):  # the usual case
        return values
    return [value for value in values if isinstance(value, kind)]


def _properties(schemas, root):
    checks = [(name, _check_for(schema, root)) for name, schema in schemas.items()]

    def check(values):
        objects = _of(dict, values)
        for name, good in checks:
            column = [value[name] for value in objects if name in value]
            if column and not good(column):
                return False
        return True

    return check


def _required(names, _):
    wanted = set(names)
    return lambda values: all(map(wanted.issubset, _of(dict, values)))


def _closed(known):
    return lambda values: all(map(known.issuperset, _of(dict, values)))


def _items(schema, root):
    check = _check_for(schema, root)
    return lambda values: check([item for value in _of(list, values) for item in value])


def _pattern(regex, _):
    search = re.compile(regex).search
    return lambda values: all(map(search, _of(str, values)))


def _sized(kind, fits):
    return lambda limit, _: lambda values: fits(map(len, _of(kind, values)), limit)


def _bounded(fits):
    return lambda limit, _: lambda values: fits(_of((int, float), values), limit)


def _of_enum(wanted, _):
    return lambda values: all(any(type(value) is type(w) and value == w for w in wanted) for value in values)


_KEYWORDS = {
    "type": _type,
    "const": lambda wanted, root: _of_enum([wanted], root),
    "enum": _of_enum,
    "required": _required,
    "properties": _properties,
    "items": _items,
    "pattern": _pattern,
    "minItems": _sized(list, lambda sizes, limit: min(sizes, default=limit) >= limit),
    "maxItems": _sized(list, lambda sizes, limit: max(sizes, default=limit) <= limit),
    "minLength": _sized(str, lambda sizes, limit: min(sizes, default=limit) >= limit),
    "maxLength": _sized(str, lambda sizes, limit: max(sizes, default=limit) <= limit),
    "minimum": _bounded(lambda values, limit: all(value >= limit for value in values)),
    "exclusiveMinimum": _bounded(lambda values, limit: all(value > limit for value in values)),
    "maximum": _bounded(lambda values, limit: all(value <= limit for value in values)),
    "$ref": _ref,
}
