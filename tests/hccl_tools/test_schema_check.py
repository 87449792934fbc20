import json
import subprocess
import sys
import urllib.parse

import pytest
from jsonschema import Draft202012Validator
from suite.cases import for_each

from hccl_tools.check import schema_check, schema_quick
from hccl_tools.common import language

SCHEMA = schema_check.load_schema("rank_table_v1.0")
DEVICE = "/server_list/0/device/0"


def each(place, *values):
    """An edit of the place for each of the values; ... takes it away."""
    return [{place: value} for value in values]


GOOD = [
    *({}, {"/extra": 1}, {"/status": "anything"}, {"/server_count": "99"}),
    *({"/server_list/0/host_ip": "10.0.0.1"}, {"/server_list/0/host_nic_ip": ...}),
    *each("/server_list/0/server_id", "s", "s" * 64, "机" * 64),
    *each(DEVICE + "/device_ip", ..., "not checked here"),
    {DEVICE + "/device_port": "16666", DEVICE + "/host_port": "1"},
    {DEVICE + "/rank_id": "9999999999"},
]

BAD = [
    *each("/version", ..., "1.2", 1.0, True),
    *each("/server_count", ..., 1, True, None, "", "01", "-1", "1 ", "１", "12345678901"),
    *each("/server_list", ..., [], {}, None, "text"),
    *each("/server_list/-", None, {}),
    *each("/status", ..., None, False),
    *each("/server_list/0", []),
    *each("/server_list/0/server_id", ..., "", "s" * 65, 10),
    *({"/server_list/0/host_ip": None}, {"/server_list/0/host_nic_ip": 0}),
    *each("/server_list/0/device", ..., [], {}),
    *each("/server_list/0/device/-", "0"),
    *each(DEVICE, []),
    *each(DEVICE + "/device_id", ..., 0, "a"),
    *each(DEVICE + "/device_ip", None, ["192.168.100.1"]),
    *each(DEVICE + "/rank_id", ..., 0.0, "+0"),
    *({DEVICE + "/device_port": 16666}, {DEVICE + "/host_port": "x"}),
    *each("", None, True, 0, 1.5, "", "text", [], [{}], {}, {"version": "1.0"}, {"a": {"b": []}}),
]


@pytest.mark.parametrize("edits", GOOD, ids=str)
def test_the_quick_check_says_yes_to_what_is_good(table, edits):
    document = table(2, 2, edits=edits)
    assert Draft202012Validator(SCHEMA).is_valid(document)
    assert schema_check.accepts(document, SCHEMA)
    assert schema_check.problems(document, SCHEMA) == []


@for_each("edits", BAD)
def test_the_quick_check_says_no_to_what_jsonschema_refuses(table, edits):
    document = table(2, 2, edits=edits)
    assert not Draft202012Validator(SCHEMA).is_valid(document)
    assert not schema_check.accepts(document, SCHEMA)
    assert schema_check.problems(document, SCHEMA)


VALUES = [None, True, False, 0, 1, 2, -1, 1.0, 2.5, "", "a", "ab", "1", [], [1], [1, "a"], {}, {"a": 1}, {"b": "a"}]


@for_each(
    "schema",
    [
        *({"type": name} for name in ("object", "array", "string", "boolean", "integer", "number", "null")),
        {"type": ["string", "null"]},
        *({"const": 1}, {"const": "a"}, {"const": True}, {"enum": [0, "a", None]}),
        {"required": ["a"]},
        {"properties": {"a": {"type": "string"}}},
        {"properties": {"a": {}}, "additionalProperties": False},
        {"items": {"type": "integer"}},
        *({"pattern": "^a"}, {"pattern": "b$"}, {"minItems": 1}, {"maxItems": 1}, {"minLength": 1}, {"maxLength": 1}),
        *({"minimum": 1}, {"exclusiveMinimum": 1}, {"maximum": 1}),
        {"$defs": {"x": {"type": "string"}}, "$ref": "#/$defs/x"},
        {"type": "string", "minLength": 2},
        {"format": "ipv4"},
        {"title": "annotations only", "$comment": "c"},
    ],
)
def test_no_keyword_lets_through_what_jsonschema_refuses(schema):
    judge = Draft202012Validator(schema)
    wrong = [value for value in VALUES if schema_check.accepts(value, schema) and not judge.is_valid(value)]
    assert wrong == []


def test_the_quick_check_knows_its_keywords_by_refusing_something_with_each():
    # A keyword whose check always says no would pass the test above, and cost time.
    refused = {"type": "null", "properties": {"a": {"type": "null"}}, "additionalProperties": False}
    assert not schema_check.accepts({"a": 1}, refused)
    assert schema_check.accepts({"a": 1}, {"properties": {"a": {"type": "integer"}}, "additionalProperties": False})


def test_a_keyword_that_the_quick_check_does_not_know_goes_to_jsonschema():
    schema = {"properties": {"a": {"not": {"type": "string"}}}}
    assert not schema_check.accepts({"a": 1}, schema)
    assert schema_check.problems({"a": 1}, schema) == []
    assert [problem.pointer for problem in schema_check.problems({"a": "x"}, schema)] == ["/a"]


# ---- the schemas themselves ----------------------------------------------------------------------


def keywords(schema):
    """Every (keyword, argument) of a schema and of the schemas in it."""
    if not isinstance(schema, dict):
        return
    for keyword, argument in schema.items():
        yield keyword, argument
        if keyword in ("properties", "patternProperties", "$defs", "dependentSchemas"):
            inner = argument.values()
        elif keyword in ("allOf", "anyOf", "oneOf", "prefixItems"):
            inner = argument
        elif keyword in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
            inner = [argument]
        else:
            inner = []
        for part in inner:
            yield from keywords(part)


PRINTED = ("preflight", "rank_table_difference")  # of what our commands print: we never read it


def schema_names(root):
    return sorted(path.name[: -len(".schema.json")] for path in (root / "schemas").glob("*.json"))


@pytest.mark.slow
def test_every_schema_is_a_schema(root):
    for name in schema_names(root):
        Draft202012Validator.check_schema(schema_check.load_schema(name))


def test_the_names_of_schemas_are_addresses(root):
    """jsonschema 4.0 finds the parts of a schema below its $id, and below a urn it finds none."""
    for name in schema_names(root):
        schema = schema_check.load_schema(name)
        assert urllib.parse.urljoin(schema["$id"], "#/$defs/x") == schema["$id"] + "#/$defs/x"


def test_the_quick_check_knows_every_keyword_that_the_schemas_use(root):
    known = set(schema_quick._KEYWORDS) | schema_quick._ANNOTATIONS | {"additionalProperties"}
    read = [name for name in schema_names(root) if name not in PRINTED]
    used = {name: {keyword for keyword, _ in keywords(schema_check.load_schema(name))} for name in read}
    assert "rank_table_v1.0" in used
    assert {name: found - known for name, found in used.items() if found - known} == {}


def test_additional_properties_of_the_schemas_are_forbidden_or_not_mentioned(root):
    for name in (name for name in schema_names(root) if name not in PRINTED):
        assert [a for k, a in keywords(schema_check.load_schema(name)) if k == "additionalProperties" and a] == [], name


# ---- what it is for ------------------------------------------------------------------------------


def test_a_good_table_is_checked_without_loading_jsonschema(root, tmp_path, table):
    (tmp_path / "t.json").write_text(json.dumps(table(8)))
    code = (
        "import sys; from hccl_tools.check import verdict; "
        "assert verdict.check_file(sys.argv[1])[1] == []; assert 'jsonschema' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "t.json")], cwd=root, check=True, timeout=300)


# ---- reasons -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("edits", "code", "pointer", "words"),
    [
        ({"/status": ...}, "missing-field", "", '"status" is missing; add "status": "completed"'),
        ({DEVICE + "/rank_id": 3}, "wrong-type", DEVICE + "/rank_id", '3 is a number; put it in quotes: "3"'),
        ({"/server_count": None}, "wrong-type", "/server_count", "null is empty; write a text"),
        ({"/server_list": {}}, "wrong-type", "/server_list", "is a group of keys; write a list"),
        ({"/server_list": []}, "bad-value", "/server_list", "0 items: too few; write at least 1 item"),
        ({DEVICE + "/device_id": "x"}, "bad-value", DEVICE + "/device_id", '"x" does not fit; write '),
        (
            {"/server_list/0/server_id": "s" * 65},
            "bad-value",
            "/server_list/0/server_id",
            "65 characters: too many; write at most 64 characters",
        ),
    ],
)
def test_a_reason_says_what_was_found_and_what_to_write(table, edits, code, pointer, words):
    (problem,) = schema_check.problems(table(2, edits=edits), SCHEMA)
    assert (problem.code, problem.pointer) == (code, pointer)
    assert words in f"{problem.text}; {problem.remedy}"


def test_two_missing_names_are_two_problems(table):
    found = schema_check.problems(table(2, edits={"/status": ..., "/server_count": ...}), SCHEMA)
    assert sorted(problem.text for problem in found) == ['"server_count" is missing', '"status" is missing']


def test_a_misspelt_key_of_a_closed_object_is_told_the_right_one():
    schema = {"type": "object", "properties": {"batch_size": {}}, "additionalProperties": False}
    (problem,) = schema_check.problems({"batchsize": 1}, schema)
    assert (problem.code, problem.pointer) == ("unknown-key", "/batchsize")
    assert problem.remedy == 'did you mean "batch_size"?'


def test_a_schema_that_refers_to_itself_is_followed_as_far_as_the_document_goes():
    node = {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/list"}}}
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {"node": node, "list": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
    }
    assert schema_check.accepts({"a": [{"a": []}]}, schema)
    assert not schema_check.accepts({"a": [{"b": []}]}, schema)
    assert not schema_check.accepts({"a": []}, {"$ref": "#/$defs/odd", "$defs": {"odd": {"oneOf": [{}]}}})


@pytest.mark.parametrize(
    ("edits", "text"),
    [
        ({"/server_list": ...}, '缺少 "server_list"；请加上 "server_list"：服务器列表'),
        ({"/server_count": "01"}, '"01" 不合适；请写 带引号的整数，不带符号和前导零'),
        ({"/server_list": []}, "0 个元素：太少；请写至少 1 个元素"),
        ({"/server_list/0/server_id": ""}, "0 个字符：太少；请写至少 1 个字符"),
    ],
)
def test_what_the_schema_says_about_a_key_is_translated(table, edits, text):
    language.use("zh")
    try:
        (found,) = schema_check.problems(table(2, edits=edits), SCHEMA)
        assert f"{found.text}；{found.remedy}" == text
    finally:
        language.use("en")
