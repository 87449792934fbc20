"""Checks a table's structure against the JSON Schemas in ``schemas/``: a quick pass, or every reason for a failure.

jsonschema decides, but importing it takes longer than starting eight ranks.  So schema_quick checks a document first.
It reads the same schema file, and can only accept a document. jsonschema checks the others and finds the reasons.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

from hccl_tools.check.schema_quick import quick_check
from hccl_tools.common import project
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.problem import Problem


def load_schema(name: str) -> JsonObject:
    """The schema `name`, such as ``rank_table_v1.0``."""
    with open(project.path("schemas", name + ".schema.json"), encoding="utf-8") as file:
        schema: JsonObject = json.load(file)
    return schema


def problems_by_name(document: object, name: str) -> list[Problem]:
    """`problems` for the schema `name`, which is prepared once per process."""
    schema, good = _ready(name)
    return [] if good(document) else _explained(document, schema)


@cache
def _ready(name: str) -> tuple[JsonObject, Callable[[object], bool]]:
    schema = load_schema(name)
    return schema, quick_check(schema, schema)


def problems(document: object, schema: JsonObject) -> list[Problem]:
    """Every way in which `document` does not fit `schema`, sorted by place."""
    return [] if accepts(document, schema) else _explained(document, schema)


def accepts(document: object, schema: JsonObject) -> bool:
    """True when `document` certainly satisfies `schema`; False means that only jsonschema can decide."""
    return quick_check(schema, schema)(document)


def _explained(document: object, schema: JsonObject) -> list[Problem]:
    from hccl_tools.check import schema_words  # imports jsonschema: 0.1 s

    return schema_words.problems(document, schema)
