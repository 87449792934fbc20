"""Explains why a document does not satisfy a schema: every error of jsonschema becomes a Problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from difflib import get_close_matches

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from hccl_tools.check.schema_quick import quick_check
from hccl_tools.common.documents import JsonObject as Schema
from hccl_tools.common.problem import Problem, pointer
from hccl_tools.common.record import Row
from hccl_tools.common.words import count, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Fault(Row):
    """One error of jsonschema: a value, its place, and the keyword of a schema that it does not satisfy."""

    value: Any
    place: str
    keyword: str
    wanted: Any  # the argument of the keyword
    schema: Schema
    message: str


def problems(document: Any, schema: Schema) -> list[Problem]:
    """Every way in which `document` does not fit `schema`, sorted by place."""
    found = [problem for fault in _faults(document, schema) for problem in _explain(fault)]
    return sorted(set(found), key=lambda problem: (problem.pointer, problem))


def _faults(document: Any, schema: Schema) -> Iterator[Fault]:
    """What jsonschema finds, without the entries of lists that the quick check accepts.

    One bad device among 100,000 would otherwise take seconds to find.
    """
    quick_checks: dict[str, Callable[[object], bool]] = {}

    def items(validator: Any, wanted: Schema, instance: Any, _: Schema) -> Iterator[ValidationError]:
        if validator.is_type(instance, "array"):
            key = str(wanted)
            if key not in quick_checks:
                quick_checks[key] = quick_check(wanted, schema)
            for index, item in enumerate(instance):
                if not quick_checks[key](item):
                    yield from validator.descend(item, wanted, path=index)

    types = Draft202012Validator.TYPE_CHECKER.redefine("number", _is_number)
    judge: Any = extend(Draft202012Validator, {"items": items}, type_checker=types)  # type: ignore[no-untyped-call]
    error: Any  # by their types its fields may be unset; they never are
    for error in judge(schema).iter_errors(document):
        place = pointer(*error.absolute_path)
        yield Fault(error.instance, place, error.validator, error.validator_value, error.schema, error.message)


def _is_number(_: object, value: object) -> bool:
    """Whether it is a number: infinity and NaN, which YAML and Python's JSON can read, are none."""
    return isinstance(value, int) and not isinstance(value, bool) or isinstance(value, float) and math.isfinite(value)


def _explain(fault: Fault) -> Iterator[Problem]:
    explain = _EXPLANATIONS.get(fault.keyword)
    if explain:
        yield from explain(fault)
    else:
        yield Problem("bad-value", fault.place, fault.message, f"see {fault.schema.get('title', 'the schema')}")


def _explain_required(fault: Fault) -> Iterator[Problem]:
    # jsonschema makes one error for each missing name and has the name only inside the message.
    for name in fault.wanted:
        if name not in fault.value and repr(name) in fault.message:
            described = fault.schema.get("properties", {}).get(name, {}).get("description")
            meaning = f": {described}" if described else ""
            yield Problem("missing-field", fault.place, f'"{name}" is missing', f'add "{name}"{meaning}')


def _explain_type(fault: Fault) -> Iterator[Problem]:
    value, wanted = fault.value, [fault.wanted] if isinstance(fault.wanted, str) else fault.wanted
    if wanted == ["string"] and isinstance(value, (int, float)) and not isinstance(value, bool):
        remedy = f'put it in quotes: "{value}"'
    else:
        remedy = f"write {' or '.join(_A.get(name, name) for name in wanted)}"
    yield Problem("wrong-type", fault.place, f"{shown(value)} is {_kind(value)}", remedy)


def _explain_closed(fault: Fault) -> Iterator[Problem]:
    known = sorted(fault.schema["properties"])
    for name in fault.value:
        if name not in known:
            remedy = _did_you_mean(name, known) or f"known here: {', '.join(known)}"
            yield Problem("unknown-key", fault.place + pointer(name), f"no such key: {shown(name)}", remedy)


def _explain_enum(fault: Fault) -> Iterator[Problem]:
    wanted = fault.wanted if fault.keyword == "enum" else [fault.wanted]
    remedy = _did_you_mean(fault.value, wanted) or f"write {' or '.join(map(shown, wanted))}"
    yield Problem("bad-value", fault.place, f"{shown(fault.value)} is not known here", remedy)


def _did_you_mean(found: object, known: list[Any]) -> str | None:
    near = get_close_matches(str(found), [str(word) for word in known], n=1)
    return f'did you mean "{near[0]}"?' if near else None


def _explain_pattern(fault: Fault) -> Iterator[Problem]:
    what = fault.schema.get("description", f"text that matches {fault.wanted}")
    yield Problem("bad-value", fault.place, f"{shown(fault.value)} does not fit", f"write {what}")


_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most"}


def _explain_bound(fault: Fault) -> Iterator[Problem]:
    fault_word = "too large" if fault.keyword == "maximum" else "too small"
    remedy = f"write {_BOUNDS[fault.keyword]} {fault.wanted}"
    yield Problem("bad-value", fault.place, f"{shown(fault.value)} is {fault_word}", remedy)


def _explain_size(fault: Fault) -> Iterator[Problem]:
    noun = "item" if fault.keyword.endswith("Items") else "character"
    few = fault.keyword.startswith("min")
    text = f"{count(len(fault.value), noun)}: too {'few' if few else 'many'}"
    remedy = f"write at {'least' if few else 'most'} {count(fault.wanted, noun)}"
    yield Problem("bad-value", fault.place, text, remedy)


_EXPLANATIONS = {
    "required": _explain_required,
    "type": _explain_type,
    "additionalProperties": _explain_closed,
    "enum": _explain_enum,
    "const": _explain_enum,
    "pattern": _explain_pattern,
    **dict.fromkeys(_BOUNDS, _explain_bound),
    **dict.fromkeys(("minItems", "maxItems", "minLength", "maxLength"), _explain_size),
}

_A = {
    "object": "a group of keys",
    "array": "a list",
    "string": "a text",
    "boolean": "True or False",
    "integer": "a whole number",
    "number": "a number",
}


def _kind(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "True or False, not a text"
    if isinstance(value, (int, float)):
        return "a number" if _is_number(None, value) else "not a finite number"
    names: dict[type, str] = {str: "a text", list: "a list", dict: "a group of keys"}
    return names.get(type(value), f"a {type(value).__name__}")
