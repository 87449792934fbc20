import pytest

from hccl_tools.common.problem import Problem, pointer


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


def test_a_problem_of_a_very_long_value_stays_short():
    assert len(Problem("x", "/" + "k" * 9999, "9" * 9999, "8" * 9999).line("t.json")) < 2000
