"""Metrics as text: Prometheus' text format, and a line of JSON."""

from __future__ import annotations

import json
import math

from tools.launch.monitored import MARK, MARK_OF_LINES
from tools.monitor.metrics import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.monitor.metrics import Family

VERSION = 1  # of the JSON lines
MOST_LABEL = 300  # characters of a label's value


def prometheus(run: str, families: list[Family]) -> str:
    """The text that node_exporter's textfile collector reads."""
    known: dict[int, str] = {}  # a rank has the same labels in many metrics: they are put into words once
    lines = [f"{MARK}, run {run}".replace("\n", " ").replace("\r", " ")]
    for family in families:
        name = PREFIX + family.name
        lines.append(f"# HELP {name} {_escaped(family.help)}")
        lines.append(f"# TYPE {name} {family.kind}")
        for labels, value in family.samples:
            words = known.get(id(labels)) or known.setdefault(id(labels), _labels(labels))
            lines.append(f"{name}{{{words}}} {number(value)}")
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{_label(value)}"' for name, value in labels.items())


def _label(value: str) -> str:
    return _escaped(value[:MOST_LABEL]).replace('"', r"\"")


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def number(value: float) -> str:
    """As Prometheus writes it: NaN, +Inf, 12.5."""
    if math.isfinite(value):
        return repr(value)
    return "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"


def json_line(families: list[Family]) -> str:
    """The same as a JSON object on one line, names without the prefix; JSON has no NaN, so that is a text."""
    document: dict[str, Any] = {}
    ranks: dict[str, dict[str, Any]] = {}
    for family in families:
        for labels, value in family.samples:
            found = value if math.isfinite(value) else number(value)
            if family.name.startswith("rank_"):
                rank = ranks.setdefault(
                    labels["rank"], {"rank": int(labels["rank"]), "host": labels["host"], "device": labels["device"]}
                )
                rank[family.name[len("rank_") :]] = found
            elif "stat" in labels:
                document.setdefault(family.name, {})[labels["stat"]] = found
            elif family.name.endswith("info"):
                document[family.name] = {name: text[:MOST_LABEL] for name, text in labels.items()}
            else:
                document[family.name] = found
    document["ranks"] = list(ranks.values())
    return f"{MARK_OF_LINES}{VERSION}, {json.dumps(document)[1:]}\n"
