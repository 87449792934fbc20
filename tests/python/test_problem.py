import datetime

import pytest

from hccl_tools.common.problem import Problem, pointer
from hccl_tools.common.words import one_line, shown


def test_a_problem_is_one_line_with_place_text_remedy_and_code():
    problem = Problem("rank-gap", "/server_list", "rank 1 is missing", "add it")
    assert problem.line("t.json:3") == "t.json:3: /server_list: rank 1 is missing; add it [rank-gap]"


def test_a_problem_of_the_whole_document_names_the_file_only():
    assert Problem("not-json", "", "it is empty", "fill it").line("t.json") == "t.json: it is empty; fill it [not-json]"


def test_a_problem_stays_one_line_whatever_the_document_holds():
    assert "\n" not in Problem("x", "", "a\nb\r\x1b[31m", "c\u2028d").line("t.json")


@pytest.mark.parametrize(
    ("keys", "text"),
    [((), ""), (("a", 0), "/a/0"), (("a/b",), "/a~1b"), (("a~b",), "/a~0b"), (("~1",), "/~01"), (("",), "/")],
)
def test_a_pointer_is_rfc_6901(keys, text):
    assert pointer(*keys) == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("plain 机器", "plain 机器"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[31m", "\\x1b[31m"),
        ("\u2028", "\\u2028"),
        ("\udcff", "\\udcff"),
    ],
)
def test_one_line_makes_visible_what_would_break_a_line_and_leaves_the_rest(text, line):
    assert one_line(text) == line


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", '"a"'), (None, "null"), (True, "true"), ([1], "[1]"), ("机", '"机"'), ({"a": 1}, '{"a": 1}')],
)
def test_a_value_is_shown_as_json_writes_it(value, text):
    assert shown(value) == text


def test_a_value_that_json_does_not_know_is_shown_too():
    assert shown(datetime.date(2024, 1, 2)) == "datetime.date(2024, 1, 2)"


def test_a_long_value_is_cut():
    assert shown("x" * 100, limit=10) == '"xxxxxx...'
    assert shown("x" * 8, limit=10) == '"xxxxxxxx"'
