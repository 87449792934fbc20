"""One test of many cases: it asks all of them, and names all that fail; see tests/suite/cases.py."""

import inspect
import os

import pytest
from suite.cases import for_each, none


def test_all_that_are_wrong_are_named():
    asked = []

    @for_each("number, text", [(1, "a"), (2, "b"), (3, "c"), (4, "d")], ids=lambda case: f"<{case[1]}>")
    def test(number, text):
        asked.append(text)
        if number == 2:
            raise KeyError("no such key")
        if number == 3:
            pytest.fail("not so")
        assert number < 4, f"{text} is large"

    with pytest.raises(AssertionError) as failure:
        test()
    first, second, *lines = str(failure.value).splitlines()
    assert (asked, first, lines[:2]) == (list("abcd"), "3 of 4 are wrong:", ["<c>: not so", "<d>: d is large"])
    assert second.startswith(f"<b>: KeyError: 'no such key' ({__file__}:")
    assert isinstance(failure.value.__cause__, KeyError)


def test_a_list_without_cases_fails():
    with pytest.raises(AssertionError, match="nothing to ask about"):
        for_each("number", [])(lambda number: None)()
    with pytest.raises(AssertionError, match="case 1 has not the values of one, two"):
        for_each("one, two", ["ab", "abc"])(lambda one, two: None)()


def test_cases_are_read_when_the_test_runs():
    read = []

    @for_each("number", lambda: read.append(1) or [7])
    def test(number):
        read.append(number)

    assert read == []
    test()
    assert read == [1, 7]


def test_a_case_that_cannot_run_skips_the_test_and_hides_no_failure():
    asked = []

    @for_each("number", [1, 2])
    def test(number, most):
        asked.append(number)
        if number == 1:
            pytest.skip("needs srun")
        assert number < most

    with pytest.raises(pytest.skip.Exception, match="needs srun"):
        test(most=3)
    with pytest.raises(AssertionError, match="1 of 2 are wrong:\n2: "):
        test(most=2)
    assert asked == [1, 2, 1, 2]


def test_the_fixtures_are_what_the_cases_do_not_give():
    test = for_each("one", [1])(for_each("two", [2])(lambda one, two, tmp_path: None))
    assert list(inspect.signature(test).parameters) == ["tmp_path"]


@for_each("number", range(2))
@for_each("text", "ab")
def test_a_case_has_its_own_folder_and_its_own_environment(number, text, tmp_path, monkeypatch):
    assert tmp_path.is_dir() and not list(tmp_path.iterdir())
    (tmp_path / "x").write_text("")
    assert "OF_ONE_CASE" not in os.environ
    monkeypatch.setenv("OF_ONE_CASE", f"{number}{text}")


def test_all_that_was_found_is_shown():
    none([])
    with pytest.raises(AssertionError) as failure:
        none((f"x.py:{row}: long" for row in range(99)), "split it")
    assert str(failure.value).splitlines() == [*(f"x.py:{row}: long" for row in range(99)), "split it"]
