"""The schemas have names of their own, and each config tells editors which one is its."""

import json
import os
import re
import shlex
import subprocess

import documents
import jsonschema
import language_code
import pytest
from suite.cases import for_each, none

ROOT = documents.ROOT
SCHEMAS = sorted((ROOT / "schemas").glob("*.json"))
CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))
MODELINE = "# yaml-language-server: $schema="


def linted():
    """{config: its schema, as make lint checks them}"""
    command = ["make", "--no-print-directory", "-n", "-o", ".venv/with-lint", "lint"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = {}
    for words in map(shlex.split, told.splitlines()):
        if "--schemafile" in words:
            at = words.index("--schemafile") + 1
            found.update(dict.fromkeys(words[at + 1 :], words[at]))
    return found


@pytest.mark.slow
@for_each("path", SCHEMAS)
def test_a_schema_has_a_name_that_no_other_has(path):
    name = path.name[: -len(".schema.json")]
    schema = json.loads(path.read_text(encoding="utf-8"))
    assert schema["$id"] == f"https://mindspore-launch.invalid/schema/{name}/1"
    jsonschema.validators.validator_for(schema).check_schema(schema)


def references(node):
    """Every $ref in a schema."""
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key == "$ref")
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from references(each)


@for_each("path", SCHEMAS)
def test_a_schema_needs_no_other_document(path):
    found = list(references(json.loads(path.read_text(encoding="utf-8"))))
    none(reference for reference in found if not reference.startswith("#"))


# Such a text needs the name of its key, and often that of the object around it, before it means anything.
FRAGMENT = re.compile(r"(?:of|that|by|in which|after whose|null|such as) .*", re.IGNORECASE)


@for_each("path", SCHEMAS)
def test_a_description_can_be_read_alone(path):
    none(
        f"{line}: {text}"
        for line, text in language_code.schema_texts(path.read_text(encoding="utf-8"))
        if FRAGMENT.fullmatch(text)
    )


def test_each_config_tells_editors_the_schema_that_make_lint_takes():
    told = {}
    for path in CONFIGS:
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith(MODELINE), path
        schema = path.parent / first[len(MODELINE) :]
        told[os.path.relpath(path, ROOT)] = os.path.relpath(os.path.normpath(schema), ROOT)
    assert told == linted()
