import json

import pytest
from suite.cases import for_each

from hccl_tools.check import verdict
from hccl_tools.common.problem import Problem
from hccl_tools.table import json_faults, rank_table

TEXT = '{\n  "a": [1, {"b/c": "x"}],\n\t"d~": {"e": [\n    null]},\n  "机": true\n}\n'


@pytest.mark.parametrize(
    ("pointer", "row", "column"),
    [
        ("/a", 2, 8),
        ("/a/0", 2, 9),
        ("/a/1", 2, 12),
        ("/a/1/b~1c", 2, 20),
        ("/d~0", 3, 8),
        ("/d~0/e/0", 4, 5),
        ("/机", 5, 8),
        ("/a/7", 2, 8),
        ("/a/1/none/x", 2, 12),
        ("", None, None),
        ("/none", None, None),
    ],
)
def test_a_pointer_gets_the_place_of_its_value_or_of_what_it_would_be_in(pointer, row, column):
    (placed,) = json_faults.placed([Problem("x", pointer, "t", "r")], TEXT.encode())
    assert (placed.row, placed.column) == (row, column)


def test_many_places_are_found_in_one_pass():
    text = json.dumps({"list": [{"n": n} for n in range(50)]}, indent=1)
    found = json_faults.placed([Problem("x", f"/list/{n}/n", "t", "r") for n in range(50)], text.encode())
    assert [problem.row for problem in found] == [4 + 3 * n for n in range(50)]


def test_of_a_key_that_stands_twice_the_place_is_that_of_the_last():
    (placed,) = json_faults.placed([Problem("x", "/a", "t", "r")], b'{"a": 1,\n"a": 2}')
    assert placed.row == 2


@pytest.mark.parametrize(
    ("data", "places"),
    [
        (b'{"a": 1, "a": 2}', [(1, 10)]),
        (b'{"a": 1,\n "b": {"c": 1,\n  "c": 2},\n "a": {"d": 1, "d": 1}}', [(3, 3), (4, 2), (4, 16)]),
        (b'[[{"a": 1}, {"a": [], "b": {}, "a": []}]]', [(1, 32)]),
        (b'{"\\u0061": 1, "a": 2}', [(1, 15)]),
    ],
)
def test_a_key_that_stands_twice_is_an_error_with_line_and_column(data, places):
    document, problems = rank_table.parse(data)
    assert document is None
    assert [problem.code for problem in problems] == ["duplicate-key"] * len(places)
    assert [(problem.row, problem.column) for problem in problems] == places
    row, column = places[0]
    assert f"line {row}, column {column}: " in problems[0].text


@pytest.mark.parametrize(
    ("data", "words", "row"),
    [
        (b'{"a": "NaN",\n "b": NaN}', "line 2, column 7: NaN is not a number in JSON", 2),
        (b"[\n-Infinity]", "line 2, column 1: -Infinity is not a number", 2),
        (b"[1,\n" + b"9" * 5000 + b"]", "line 2, column 1: a number of very many digits", 2),
        (b'{"a": "b",\n}', "line 2, column 1: a comma before '}'", 2),
        (b'["a", ]', "line 1, column 7: a comma before ']'", 1),
        (b"{'a': 1}", "line 1, column 2: a single quote", 1),
        (b'{"a": 1,\n # c\n}', "line 2, column 2: a comment", 2),
        (b"\xef\xbb\xbf{}", "line 1, column 1: the file starts with a byte-order mark", 1),
        (b'{\n"a": "\xff"}', "byte 9 is not UTF-8 (line 2)", 2),
    ],
)
def test_what_is_not_json_is_said_with_its_place(data, words, row):
    document, (problem,) = rank_table.parse(data)
    assert document is None
    assert words in problem.text
    assert problem.row == row


@for_each("depth", [50, 300, 900, 985, 995, 1000, 1100, 100000])
@for_each("shape", ['{"version": "1.0", "server_list": %s}', '{"a": 1, "a": %s}', '{"version": %s}'])
def test_deep_nesting_never_raises(depth, shape):
    for opening, closing in (("[", "]"), ('{"x":', "}")):
        inner = opening * depth + "1" + closing * depth
        assert verdict.check_bytes((shape % inner).encode())[1]


@for_each("seed", range(300))
def test_random_bytes_never_raise(seed):
    import random

    chance = random.Random(seed)
    data = bytearray(json.dumps({"version": "1.0", "server_list": [{"device": [{}, {"rank_id": "0"}]}]}).encode())
    for _ in range(chance.randrange(1, 6)):
        data[chance.randrange(len(data))] = chance.choice(b'{}[]",:0\\u\xff\n 1e')
    verdict.check_bytes(bytes(data))
    verdict.check_bytes(bytes(chance.randrange(256) for _ in range(chance.randrange(40))))


@pytest.mark.parametrize(
    "place", ["/status", "/version", "/server_list/0/server_id", "/server_list/0/device/0/device_ip"]
)
def test_a_lone_surrogate_never_raises(table, place):
    data = json.dumps(table(2, edits={place: "\ud800"})).encode()
    for problem in verdict.check_bytes(data)[1]:
        problem.line("t.json").encode()
