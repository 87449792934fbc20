"""Read-only records: what dataclasses would do, without the import."""

import subprocess
import sys

import pytest

from hccl_tools.common.record import Record


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


def test_it_imports_neither_typing_nor_dataclasses(root):
    code = "import sys; from hccl_tools.common import record; print(*{'typing', 'dataclasses'} & set(sys.modules))"
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = [{str(root)!r}]; {code}"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert ended.stdout.strip() == ""
