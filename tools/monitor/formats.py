"""Formats metrics as text: Prometheus' text format, or a line of JSON; and the file for them."""

from __future__ import annotations

import json
import math
import os
from contextlib import suppress

from hccl_tools.common.language import tr
from tools.launch import monitored
from tools.launch.monitored import MARK, MARK_OF_LINES
from tools.monitor import formats
from tools.monitor.metrics import PREFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.monitor.metrics import Family

EVERY = 15.0  # seconds between two lines of JSON, if nothing happens
_MODE = 0o644  # another user collects the metrics
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
    """Formats a number as Prometheus does: NaN, +Inf, 12.5."""
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


# ---- The file of --metrics: replaced whole in Prometheus' text format, or grown by whole lines of JSON.


class Foreign(Exception):
    """The file holds something else by now, and stays as it is."""


class MetricsFile:
    """The file, and the run whose metrics go there."""

    def __init__(self, path: str, run: str) -> None:
        self.path, self._run = os.path.realpath(path), run
        self._lines = path.endswith(monitored.LINES)
        self._last: float | None = None  # when the last line of JSON was written
        self.shared = False  # another launch writes to it, too

    def is_due(self, now: float) -> bool:
        """Whether to write the metrics although nothing has happened; now: seconds of a monotonic clock."""
        return not self._lines or self._last is None or now - self._last >= EVERY

    def write(self, families: list[Family], now: float) -> None:
        """Writes them all.  Raises OSError, and Foreign: by now the file belongs to another program."""
        with suppress(FileNotFoundError):
            reason = monitored.fault_of_file(self.path)
            if reason:
                raise Foreign(reason)
        if self._lines:
            self._append(formats.json_line(families))
        else:
            self._replace(formats.prometheus(self._run, families))
        self._last = now

    def _append(self, line: str) -> None:
        """Adds the line, or nothing, if there is no room for all of it."""
        data = line.encode("utf-8", "replace")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, _MODE)
        try:
            size = os.fstat(descriptor).st_size
            if os.write(descriptor, data) < len(data):
                os.ftruncate(descriptor, size)
                raise OSError(tr("there is no room for a whole line"))
        finally:
            os.close(descriptor)

    def _replace(self, text: str) -> None:
        """Without fsync, unlike hccl_tools/common/whole_file: each would slow down what the ranks write."""
        if self._last is not None and not self.shared:
            with suppress(OSError):
                self.shared = not monitored.first_line(self.path).endswith(f"run {self._run}")
        draft = f"{self.path}.{self._run}.part"  # of this run: nobody else makes such a name
        with suppress(FileNotFoundError):
            os.unlink(draft)
        try:
            descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
            with open(descriptor, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            os.replace(draft, self.path)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft)
            raise
