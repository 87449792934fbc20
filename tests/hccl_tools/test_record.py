"""Read-only records: what dataclasses would do, without the import."""

import subprocess
import sys

import pytest

from hccl_tools.common.record import Record, Row


class Point(Record):
    x: int
    y: int = 0


class Named(Point):
    name: str = ""


def test_fields_are_given_by_name_and_have_defaults():
    assert (Point(x=1).x, Point(x=1).y, Named(x=1, name="a").as_dict()) == (1, 0, {"x": 1, "y": 0, "name": "a"})
    assert repr(Point(x=1)) == "Point(x=1, y=0)"


@pytest.mark.parametrize("values", [{}, {"x": 1, "z": 2}, {"y": 1}])
def test_a_missing_or_unknown_field_is_an_error(values):
    with pytest.raises(TypeError, match="Point: missing"):
        Point(**values)


def test_nothing_can_be_changed():
    point = Point(x=1)
    with pytest.raises(AttributeError, match="read-only"):
        point.x = 2
    assert point.replace(x=2) == Point(x=2) != point
    assert len({point, Point(x=1), Point(x=2)}) == 2


class Place(Row):
    """Where something is."""

    name: str
    row: int = 1

    def words(self):
        return f"{self.name}:{self.row}"


def test_a_row_is_a_tuple_with_names_defaults_and_methods():
    assert Place("a") == Place(name="a", row=1) == ("a", 1)
    assert (Place("a", 2).words(), Place("a")._replace(row=3).row, Place.__doc__) == ("a:2", 3, "Where something is.")
    assert repr(Place("a")) == "Place(name='a', row=1)"


@pytest.mark.parametrize("values", [{}, {"name": "a", "column": 2}, {"row": 1}])
def test_a_row_needs_its_fields_and_no_others(values):
    with pytest.raises(TypeError):
        Place(**values)


def test_a_row_cannot_be_changed():
    with pytest.raises(AttributeError):
        Place("a").row = 2
    with pytest.raises(AttributeError):
        Place("a").other = 2


def test_it_imports_neither_typing_nor_dataclasses(root):
    code = "import sys; from hccl_tools.common import record; print(*{'typing', 'dataclasses'} & set(sys.modules))"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = [{str(root)!r}]; {code}"],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert ended.stdout.strip() == ""
