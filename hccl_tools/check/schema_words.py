"""Explains why a document does not satisfy a schema: converts each error of jsonschema into a Problem."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from difflib import get_close_matches

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.validators import extend

from hccl_tools.check.schema_quick import quick_check
from hccl_tools.common.documents import JsonObject as Schema
from hccl_tools.common.language import marked, tr
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
        yield Problem(
            "bad-value",
            fault.place,
            fault.message,
            tr("see {title}", title=fault.schema.get("title") or tr("the schema")),
        )


def _explain_required(fault: Fault) -> Iterator[Problem]:
    # jsonschema makes one error for each missing name and has the name only inside the message.
    for name in fault.wanted:
        if name not in fault.value and repr(name) in fault.message:
            described = fault.schema.get("properties", {}).get(name, {}).get("description")
            remedy = tr('add "{name}"', name=name)
            if described:
                remedy = tr('add "{name}": {meaning}', name=name, meaning=tr(described))
            yield Problem("missing-field", fault.place, tr('"{name}" is missing', name=name), remedy)


def _explain_type(fault: Fault) -> Iterator[Problem]:
    value, wanted = fault.value, [fault.wanted] if isinstance(fault.wanted, str) else fault.wanted
    if wanted == ["string"] and isinstance(value, (int, float)) and not isinstance(value, bool):
        remedy = tr('put it in quotes: "{value}"', value=value)
    else:
        kinds = tr(" or ").join(tr(_A[name]) if name in _A else name for name in wanted)
        remedy = tr("write {value}", value=kinds)
    text = tr("{value} is {kind}", value=shown(value), kind=_kind(value))
    yield Problem("wrong-type", fault.place, text, remedy)


def _explain_closed(fault: Fault) -> Iterator[Problem]:
    known = sorted(fault.schema["properties"])
    for name in fault.value:
        if name not in known:
            remedy = _did_you_mean(name, known) or tr("known here: {known}", known=", ".join(known))
            yield Problem(
                "unknown-key", fault.place + pointer(name), tr("no such key: {name}", name=shown(name)), remedy
            )


def _explain_enum(fault: Fault) -> Iterator[Problem]:
    wanted = fault.wanted if fault.keyword == "enum" else [fault.wanted]
    remedy = _did_you_mean(fault.value, wanted) or tr("write {value}", value=tr(" or ").join(map(shown, wanted)))
    yield Problem("bad-value", fault.place, tr("{value} is not known here", value=shown(fault.value)), remedy)


def _did_you_mean(found: object, known: list[Any]) -> str | None:
    near = get_close_matches(str(found), [str(word) for word in known], n=1)
    return tr('did you mean "{near}"?', near=near[0]) if near else None


def _explain_pattern(fault: Fault) -> Iterator[Problem]:
    described = fault.schema.get("description")
    what = tr(described) if described else tr("text that matches {wanted}", wanted=fault.wanted)
    yield Problem(
        "bad-value", fault.place, tr("{value} does not fit", value=shown(fault.value)), tr("write {value}", value=what)
    )


_BOUNDS = {
    "minimum": marked("write at least {number}"),
    "exclusiveMinimum": marked("write more than {number}"),
    "maximum": marked("write at most {number}"),
}


def _explain_bound(fault: Fault) -> Iterator[Problem]:
    value = shown(fault.value)
    large = fault.keyword == "maximum"
    text = tr("{value} is too large", value=value) if large else tr("{value} is too small", value=value)
    yield Problem("bad-value", fault.place, text, tr(_BOUNDS[fault.keyword], number=fault.wanted))


def _explain_size(fault: Fault) -> Iterator[Problem]:
    noun = marked("item") if fault.keyword.endswith("Items") else marked("character")
    found, wanted = count(len(fault.value), noun), count(fault.wanted, noun)
    if fault.keyword.startswith("min"):
        text, remedy = tr("{found}: too few", found=found), tr("write at least {number}", number=wanted)
    else:
        text, remedy = tr("{found}: too many", found=found), tr("write at most {number}", number=wanted)
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
    "object": marked("a group of keys"),
    "array": marked("a list"),
    "string": marked("a text"),
    "boolean": marked("True or False"),
    "integer": marked("a whole number"),
    "number": marked("a number"),
}


def _kind(value: object) -> str:
    if value is None:
        return tr("empty")
    if isinstance(value, bool):
        return tr("True or False, not a text")
    if isinstance(value, (int, float)):
        return tr("a number") if _is_number(None, value) else tr("not a finite number")
    names: dict[type, str] = {str: _A["string"], list: _A["array"], dict: _A["object"]}
    found = type(value)
    return tr(names[found]) if found in names else tr("a {type}", type=found.__name__)
