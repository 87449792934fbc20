"""Text for people: lists, counts, and what comes from outside."""

import datetime

import pytest

from hccl_tools.common import numbers, words


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([], ""), ([4], "4"), ([4, 5], "4,5"), ([7, 6, 5, 4], "4-7"), ([0, 1, 2, 5, 7, 8, 9], "0-2,5,7-9"), ([3, 3], "3")],
)
def test_numbers_are_listed_as_ranges(numbers, text):
    assert words.ranges(numbers) == text


def test_a_noun_agrees_with_its_number():
    assert [words.count(number, "rank") for number in (0, 1, 4)] == ["0 ranks", "1 rank", "4 ranks"]
    assert [words.named("device", each) for each in ([4], [4, 5, 6, 7], [0, 2])] == [
        "device 4",
        "devices 4-7",
        "devices 0,2",
    ]


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("65535", 65535), ("65536", None), ("", None), ("-1", None), ("+1", None), ("1 ", None),
     ("²", None), ("٣", None), ("1_0", None), ("9" * 20, None), ("0" * 20 + "1", 1)],
)  # fmt: skip
def test_a_whole_number_is_ascii_digits_within_its_bounds(text, number):
    assert numbers.whole_number(text, 0, 65535) == number


def test_thousands_of_digits_are_no_crash():
    assert [numbers.whole_number(text) for text in ("9" * 5000, "0" * 5000 + "1")] == [None, 1]


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
    assert words.one_line(text) == line


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", '"a"'), (None, "null"), (True, "true"), ([1], "[1]"), ("机", '"机"'), ({"a": 1}, '{"a": 1}')],
)
def test_a_value_is_shown_as_json_writes_it(value, text):
    assert words.shown(value) == text


def test_a_value_that_json_does_not_know_is_shown_too():
    assert words.shown(datetime.date(2024, 1, 2)) == "datetime.date(2024, 1, 2)"


def test_a_long_value_is_cut():
    assert words.shown("x" * 100, limit=10) == '"xxxxxx...'
    assert words.shown("x" * 8, limit=10) == '"xxxxxxxx"'


def test_chinese_counts_and_names_without_a_plural(monkeypatch):
    monkeypatch.setattr(words, "speaks_chinese", lambda: True)
    monkeypatch.setattr(words, "tr", {"device": "设备", "rank": "rank"}.get)
    assert [words.count(4, noun) for noun in ("device", "rank")] == ["4 个设备", "4 个 rank"]
    assert words.named("device", [4, 5, 6, 7]) == "设备 4-7"
