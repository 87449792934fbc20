"""Shows the network of a rank table's devices: as a matrix on the terminal, or as a document for programs."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from hccl_tools.common import colours
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.words import clauses, one_line
from hccl_tools.hosts.cards import Card
from hccl_tools.hosts.cards_judge import Facts, Finding
from hccl_tools.table import rank_table

_OK = "ok"  # a cell of the matrix


class Network(Record):
    """What a check has found: facts of the servers that answered, findings, and the ids of silent servers."""

    servers: Sequence[rank_table.Server]
    facts: Facts
    findings: Sequence[Finding]
    silent: Sequence[str]


def print_text(network: Network) -> None:
    """Prints the matrix, one line per finding, and a summary."""
    from hccl_tools.show import terminal

    coloured = colours.wanted(sys.stdout)
    columns, rows = _matrix(network)
    cells = {cell for row, _ in rows for cell in row[1:] if cell}
    terminal.show_rows(columns, rows, {cell: colours.GOOD if cell == _OK else colours.FAILURE for cell in cells})
    for found in network.findings:
        code = f" [{found.code}]" if found.code else ""
        where = tr("{server} device {device} (rank {rank})", server=found.server, device=found.device, rank=found.rank)
        place, text = one_line(where), one_line(clauses(found.text, f"{found.remedy}{code}"))
        print(f"{colours.shown(place, colours.FAILURE, coloured)}: {text}")
    asked = sum(map(len, network.facts.values()))
    wrong = len({(found.server, found.device) for found in network.findings})
    summary = tr(
        "{asked} devices asked on {reached} of {servers} servers, {wrong} with a problem",
        asked=asked,
        reached=len(network.facts),
        servers=len(network.servers),
        wrong=wrong,
    )
    print(colours.shown(summary, colours.HEAD, coloured))


def _matrix(network: Network) -> tuple[list[tuple[str, bool]], list[tuple[list[str], bool]]]:
    """(columns, rows): one row per server, one column per device, in each cell ok or what is wrong."""
    wrong = grouped(((found.server, found.device), found.check) for found in network.findings)
    numbers = sorted({int(device.device_id) for server in network.servers for device in server.devices})
    rows = []
    for server in network.servers:
        name = server.server_id
        if name in network.facts:
            own = {int(device.device_id) for device in server.devices}
            cells = [" ".join(dict.fromkeys(wrong.get((name, n), [_OK]))) if n in own else "" for n in numbers]
            rows.append(([name, *cells], False))
        elif name in network.silent:
            rows.append(([name, *(tr("no answer") for _ in numbers)], False))
    return [("server", False), *((f"device {number}", False) for number in numbers)], rows


def document(network: Network) -> JsonObject:
    """The result as JSON."""
    servers = [
        {
            "server_id": server.server_id,
            "answered": server.server_id in network.facts,
            "devices": [_device(device, network.facts[server.server_id]) for device in server.devices]
            if server.server_id in network.facts
            else [],
        }
        for server in network.servers
    ]
    problems = [found._asdict() for found in network.findings]
    return {"ok": not problems and not network.silent, "servers": servers, "problems": problems}


def _device(device: rank_table.Device, cards: Mapping[int, Card]) -> JsonObject:
    number = int(device.device_id)
    said = {key: value for key, value in cards[number].as_dict().items() if key not in ("failed", "kept")}
    return {"device_id": number, "rank_id": int(device.rank_id), "device_ip": device.device_ip, **said}
