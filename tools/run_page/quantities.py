"""What a column of numbers is called on the page, and how its numbers are written: with a unit, and no more digits."""

from __future__ import annotations

from hccl_tools.common.language import marked, tr

_TITLES = {
    "loss": (marked("Loss"), ""),
    "step_ms": (marked("Time of a step"), "ms"),
    "data_ms": (marked("Time of a step that waits for data"), "ms"),
    "before_ms": (marked("Time of a step before the ranks wait for one another"), "ms"),
    "samples_per_s": (marked("Samples a second"), "/s"),
    "lr": (marked("Learning rate"), ""),
}
ORDER = tuple(_TITLES)
SPEEDS = ("step_ms", "data_ms", "before_ms", "samples_per_s")  # they jump from step to step around a level
_LARGE = 1000  # from which a number has separators, and milliseconds become seconds
_SMALL = 1e-4


def title_of(field: str) -> tuple[str, str]:
    """(title, unit) of a field or a metric."""
    if field in _TITLES:
        title, unit = _TITLES[field]
        return tr(title), unit
    name, _, unit = field.partition(" ")
    return tr("{name} on held-out data", name=name), unit


def shown(value: float, unit: str) -> str:
    """The number with its unit: ``105 ms``, ``1.2 s``, ``96.4 %``, ``12,345/s``."""
    if unit == "ms" and abs(value) >= _LARGE:
        value, unit = value / 1000, "s"
    text = _digits(value)
    return f"{text}{unit}" if unit.startswith("/") else f"{text} {unit}".strip()


def _digits(value: float) -> str:
    """At most four digits that count; more of them only before the point."""
    if abs(value) >= _LARGE:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < _SMALL else f"{value:.4g}"
