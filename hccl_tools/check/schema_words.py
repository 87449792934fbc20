"""Every reason why a document does not satisfy a schema, in words: jsonschema finds, we explain."""

from difflib import get_close_matches

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from hccl_tools.check import schema_check
from hccl_tools.common.problem import Problem, pointer
from hccl_tools.common.words import shown


def problems(document, schema):
    """A list of Problem, sorted by place; empty when jsonschema finds `document` valid."""
    found = [problem for error in _judge(schema).iter_errors(document) for problem in _explain(error)]
    return sorted(set(found), key=lambda problem: (problem.pointer, problem))


def _judge(schema):
    """jsonschema's validator, but the entries of a list that the quick check accepts are not asked about.

    One bad device among 100,000 would otherwise take seconds to find.
    """
    quick_checks = {}

    def items(validator, wanted, instance, _):
        if validator.is_type(instance, "array"):
            key = str(wanted)
            if key not in quick_checks:
                quick_checks[key] = schema_check.quick_check(wanted, schema)
            for index, item in enumerate(instance):
                if not quick_checks[key](item):
                    yield from validator.descend(item, wanted, path=index)

    return extend(Draft202012Validator, {"items": items})(schema)


def _explain(error):
    """The Problems that one jsonschema error stands for."""
    place = list(error.absolute_path)
    explain = _EXPLANATIONS.get(error.validator)
    if explain:
        yield from explain(error, place)
    else:
        yield Problem("bad-value", pointer(*place), error.message, "see " + _schema_name(error))


def _explain_required(error, place):
    # jsonschema makes one error of each missing name and gives the name only inside the message.
    for name in error.validator_value:
        if name not in error.instance and repr(name) in error.message:
            yield Problem(
                "missing-field", pointer(*place), f'"{name}" is missing', f'add "{name}"{_meaning(error, name)}'
            )


def _explain_type(error, place):
    wanted = error.validator_value if isinstance(error.validator_value, str) else " or ".join(error.validator_value)
    if wanted == "string" and isinstance(error.instance, (int, float)) and not isinstance(error.instance, bool):
        remedy = f'put it in quotes: "{error.instance}"'
    else:
        remedy = f"write {_A[wanted]}" if wanted in _A else f"write {wanted}"
    yield Problem("wrong-type", pointer(*place), f"{shown(error.instance)} is {_kind(error.instance)}", remedy)


def _explain_closed(error, place):
    known = sorted(error.schema["properties"])
    for name in error.instance:
        if name not in known:
            near = get_close_matches(str(name), known, n=1)
            remedy = f'did you mean "{near[0]}"?' if near else f"known here: {', '.join(known)}"
            yield Problem("unknown-key", pointer(*place, name), f"no such key: {shown(name)}", remedy)


def _explain_enum(error, place):
    wanted = error.validator_value if error.validator == "enum" else [error.validator_value]
    near = get_close_matches(str(error.instance), [str(w) for w in wanted], n=1)
    remedy = f'did you mean "{near[0]}"?' if near else f"write {' or '.join(map(shown, wanted))}"
    yield Problem("bad-value", pointer(*place), f"{shown(error.instance)} is not known here", remedy)


def _explain_pattern(error, place):
    what = error.schema.get("description", f"text that matches {error.validator_value}")
    yield Problem("bad-value", pointer(*place), f"{shown(error.instance)} does not fit", f"write {what}")


def _explain_size(error, place):
    least = error.validator.startswith("min")
    found = len(error.instance) if hasattr(error.instance, "__len__") else error.instance
    word = "at least" if least else "at most"
    if error.validator == "exclusiveMinimum":
        word = "more than"
    thing = {"minItems": " items", "maxItems": " items", "minLength": " characters", "maxLength": " characters"}
    unit = thing.get(error.validator, "")
    text = f"{shown(found)}{unit} is too {'little' if least or word == 'more than' else 'much'}"
    yield Problem("bad-value", pointer(*place), text, f"{word} {error.validator_value}{unit}")


_EXPLANATIONS = {
    "required": _explain_required,
    "type": _explain_type,
    "additionalProperties": _explain_closed,
    "enum": _explain_enum,
    "const": _explain_enum,
    "pattern": _explain_pattern,
    "minItems": _explain_size,
    "maxItems": _explain_size,
    "minLength": _explain_size,
    "maxLength": _explain_size,
    "minimum": _explain_size,
    "exclusiveMinimum": _explain_size,
    "maximum": _explain_size,
}

_A = {
    "object": "a group of keys",
    "array": "a list",
    "string": "a text",
    "boolean": "True or False",
    "integer": "a whole number",
    "number": "a number",
}


def _kind(value):
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "True or False, not a text"
    if isinstance(value, (int, float)):
        return "a number"
    names = {str: "a text", list: "a list", dict: "a group of keys"}
    return names.get(type(value), f"a {type(value).__name__}")


def _meaning(error, name):
    described = error.schema.get("properties", {}).get(name, {}).get("description")
    return f": {described}" if described else ""


def _schema_name(error):
    return error.schema.get("title", "the schema")
