"""Structure against the JSON Schemas in ``schemas/``: a quick yes, or every reason for a no.

jsonschema is the judge, but importing it takes longer than starting eight ranks.  So a document is
first put to `accepts`, which reads the same schema file and can only say yes; whatever it does not
accept goes to jsonschema, which has the last word and finds the reasons.
tests/python/test_schema_check.py holds the two against each other.
"""

import json
import os
import re

SCHEMA_FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(__file__))), "schemas")

# keywords that describe and do not constrain
_ANNOTATIONS = frozenset(["$schema", "$id", "$comment", "$defs", "title", "description", "default", "examples"])


def load_schema(name):
    """The schema `name` (``rank_table_v1.0``) as a dict."""
    with open(os.path.join(SCHEMA_FOLDER, name + ".schema.json"), encoding="utf-8") as file:
        return json.load(file)


def problems(document, schema):
    """A list of Problem, sorted by place; empty when `document` has the structure of `schema`."""
    if accepts(document, schema):
        return []
    from hccl_tools import schema_explain  # brings jsonschema along: 0.1 s

    return schema_explain.problems(document, schema)


def accepts(document, schema):
    """True when `document` surely satisfies `schema`; False means: ask jsonschema."""
    return quick_check(schema, schema)(document)


def quick_check(schema, root):
    """`accepts` for a part of the schema `root`, ready to be called on many values."""
    try:
        return _check_for(schema, root)
    except _UnknownKeyword:
        return lambda value: False


class _UnknownKeyword(Exception):
    """The schema uses a keyword that the quick check does not know."""


def _check_for(schema, root):
    """A function value -> bool for one (sub)schema of the draft 2020-12 subset that we use."""
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
    return lambda value: all(check(value) for check in checks)


# A number written as 2.0 is an integer for JSON Schema and not here: jsonschema settles it.
_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def _type(names, _):
    types = tuple(_TYPES[name] for name in ([names] if isinstance(names, str) else names))
    if bool in types:
        return lambda value: isinstance(value, types)
    # In Python True is an int; in JSON it is not.
    return lambda value: isinstance(value, types) and value is not True and value is not False


def _ref(target, root):
    return _check_for(root["$defs"][target.rpartition("/")[2]], root)


def _properties(schemas, root):
    checks = {name: _check_for(schema, root) for name, schema in schemas.items()}
    return lambda value: (
        not isinstance(value, dict) or all(checks[name](item) for name, item in value.items() if name in checks)
    )


def _closed(known):
    return lambda value: not isinstance(value, dict) or known.issuperset(value)


def _items(schema, root):
    check = _check_for(schema, root)
    return lambda value: not isinstance(value, list) or all(map(check, value))


def _pattern(regex, _):
    search = re.compile(regex).search
    return lambda value: not isinstance(value, str) or search(value) is not None


def _sized(kind, fits):
    return lambda limit, _: lambda value: not isinstance(value, kind) or fits(len(value), limit)


def _bounded(fits):
    return lambda limit, _: lambda value: not isinstance(value, (int, float)) or fits(value, limit)


_KEYWORDS = {
    "type": _type,
    "const": lambda wanted, _: lambda value: type(value) is type(wanted) and value == wanted,
    "enum": lambda wanted, _: lambda value: any(type(value) is type(w) and value == w for w in wanted),
    "required": lambda names, _: lambda value: not isinstance(value, dict) or all(n in value for n in names),
    "properties": _properties,
    "items": _items,
    "pattern": _pattern,
    "minItems": _sized(list, lambda size, limit: size >= limit),
    "maxItems": _sized(list, lambda size, limit: size <= limit),
    "minLength": _sized(str, lambda size, limit: size >= limit),
    "maxLength": _sized(str, lambda size, limit: size <= limit),
    "minimum": _bounded(lambda value, limit: value >= limit),
    "exclusiveMinimum": _bounded(lambda value, limit: value > limit),
    "maximum": _bounded(lambda value, limit: value <= limit),
    "$ref": _ref,
}
