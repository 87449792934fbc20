"""Read-only records with typed fields: `Record`, created with keyword arguments, and `Row`, a named tuple.

They replace ``dataclasses`` and ``typing.NamedTuple``, whose import takes longer than half of a launch's checks. Type
checkers read the fields and their types from the annotations. At run time these are text and cost nothing.
"""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar
    from typing import NamedTuple as Row

    from typing_extensions import dataclass_transform

    _Self = TypeVar("_Self", bound="Record")
else:

    def dataclass_transform(**_):
        """For type checkers only."""
        return lambda cls: cls

    class _RowType(type):
        def __new__(cls, name, bases, body):
            fields = body.get("__annotations__", ())
            defaults = [body.pop(field) for field in fields if field in body]
            base = (namedtuple(name, fields, defaults=defaults),) if bases else ()
            return type.__new__(type if bases else cls, name, base, {**body, "__slots__": ()})

    class Row(metaclass=_RowType):
        """The base of a row: ``class Point(Row): x: int; y: int = 0`` is a tuple; ``Point(1)``, ``Point(x=1)``."""


__all__ = ["Record", "Row"]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Record:
    """The base of a record: ``class Point(Record): x: int; y: int = 0`` is made by ``Point(x=1)``.

    Fields are given by name.  A missing field without default, or an unknown name, raises TypeError.
    """

    _fields: tuple[str, ...] = ()

    def __init_subclass__(cls) -> None:
        own = tuple(name for name in cls.__dict__.get("__annotations__", ()) if not name.startswith("_"))
        cls._fields = cls._fields + tuple(name for name in own if name not in cls._fields)

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - set(self._fields)
        missing = [name for name in self._fields if name not in values and not hasattr(type(self), name)]
        if unknown or missing:
            raise TypeError(f"{type(self).__name__}: missing {missing}, unknown {sorted(unknown)}")
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}.{name} is read-only")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.as_dict() == other.as_dict()

    def __hash__(self) -> int:
        return hash(tuple(self.as_dict().values()))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.as_dict().items())
        return f"{type(self).__name__}({inside})"

    def as_dict(self) -> dict[str, Any]:
        """{field: value}, in the order of the declaration."""
        return {name: getattr(self, name) for name in self._fields}

    def replace(self: _Self, **changes: Any) -> _Self:
        """The same record with some fields changed."""
        return type(self)(**{**self.as_dict(), **changes})
