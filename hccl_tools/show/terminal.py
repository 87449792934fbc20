"""An overview as a table on the terminal, by rich: no colour with NO_COLOR or where stdout is a file."""

import os

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hccl_tools.show import overview

_FILE_WIDTH = 160  # columns where stdout is no terminal: enough that nothing is cut or wrapped


def show(view):
    """Prints the Overview on stdout: a line a device where that is few, else a line a run of servers."""
    console = _console()
    devices = sum(len(server.devices) for server in view.servers)
    columns, rows = (_detailed if devices <= overview.MAX_DETAILED else _folded)(view)
    console.print(Text(view.headline))
    console.print(_table(columns, rows))


def show_rows(columns, rows):
    """Prints rows, (texts, whether a line is drawn below), under columns, (name, whether to the right)."""
    _console().print(_table(columns, rows))


def _console():
    console = Console(highlight=False)
    if console.is_terminal or "COLUMNS" in os.environ:
        return console
    return Console(highlight=False, width=_FILE_WIDTH)


def _table(columns, rows):
    table = Table(show_edge=False, pad_edge=False, header_style="bold")
    for name, right in columns:
        table.add_column(name, justify="right" if right else "left", overflow="fold")
    for row, ends_section in rows:
        table.add_row(*map(Text, row), end_section=ends_section)  # Text: what a table says is no markup
    return table


def _detailed(view):
    pods = any(server.pod for server in view.servers)
    columns = [("server", False), ("rank", True), ("device", True), ("device_ip", False)]
    if pods:
        columns += [("super_device_id", True), ("super pod", False)]
    rows = []
    for server in view.servers:
        for index, device in enumerate(server.devices):
            row = [server.name if index == 0 else "", device.rank, device.number, device.address]
            if pods:
                row += [device.super_device_id, (server.pod or "-") if index == 0 else ""]
            rows.append((row, index == len(server.devices) - 1))
    return columns, rows


def _folded(view):
    pods = any(server.pod for server in view.servers)
    columns = [("servers", False), ("number", True), ("ranks", False), ("devices", False), ("device_ip", False)]
    if pods:
        columns.append(("super pod", False))
    rows = []
    for run in view.runs:
        first, last = run[0], run[-1]
        row = [
            first.name if len(run) == 1 else f"{first.name} - {last.name}",
            str(len(run)),
            overview.ranges([device.rank for server in run for device in server.devices]),
            overview.ranges([device.number for device in first.devices]),
            overview.addresses(run),
        ]
        rows.append((row + ([first.pod or "-"] if pods else []), False))
    return columns, rows
