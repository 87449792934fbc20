"""What is read of JSON that anybody may have written, and of the times in it."""

import pytest

from hccl_tools.common import documents, utc

ODD = [None, True, 1, 1.5, "x", [], [1, {"a": 1}, "x", None], {}, {"k": None}]


@pytest.mark.parametrize("parent", ODD, ids=repr)
@pytest.mark.parametrize("value", ODD, ids=repr)
def test_only_the_wanted_type_counts(parent, value):
    for whole, found in ((parent, None), ({"k": value}, value)):
        assert documents.part(whole, "k") == (found if type(found) is dict else {})
        assert documents.entries(whole, "k") == (found if type(found) is list else [])
        assert documents.objects(whole, "k") == ([{"a": 1}] if type(found) is list and found else [])
        assert documents.texts(whole, "k") == (["x"] if type(found) is list and found else [])
        assert documents.text(whole, "k") == (found if type(found) is str else None)
        assert documents.number(whole, "k") == (found if type(found) is int else None)


def test_a_time_in_utc_is_read_as_it_was_written():
    assert utc.text(1769860800) == "2026-01-31T12:00:00Z" and utc.seconds("2026-01-31T12:00:00Z") == 1769860800.0
    assert utc.seconds(utc.text()) is not None
    for odd in (None, 5, "", "2026-01-31", "2026-01-31T12:00:00", "99999-01-31T12:00:00Z", "2026-13-31T12:00:00Z"):
        assert utc.seconds(odd) is None
