"""Checks the network of every device in a rank table; users run it as scripts/check_network.sh.

It queries the cards of this host, or over ssh those of every host in a hostfile.  This host judges all answers.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from types import FrameType

from hccl_tools.commands import arguments, boundary
from hccl_tools.common import colours, documents, project, script_help
from hccl_tools.common.command_line import Parser
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.grouping import grouped
from hccl_tools.common.language import tr
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import clauses, one_line
from hccl_tools.hosts import ask, cards, cards_collect, cards_judge, hostfile, ssh
from hccl_tools.hosts.cards import Card
from hccl_tools.hosts.cards_judge import Facts, Finding
from hccl_tools.machine import driver
from hccl_tools.table import rank_table

PROGRAM = "check_network.sh"

say = functools.partial(boundary.say, PROGRAM)
_OK = "ok"  # a cell of the matrix


def main(argv: Sequence[str] | None = None) -> int:
    options = parse_arguments(argv)
    signals_interrupt()
    return boundary.run(PROGRAM, lambda: interruptible(options))


def interruptible(options: argparse.Namespace) -> int:
    """Runs the check, or answers another host; a signal becomes a Refusal after everything is restored."""
    try:
        if options.answer:
            return cards_collect.answer()
        return run(options)
    except KeyboardInterrupt as interrupt:
        status = 128 + (interrupt.args[0] if interrupt.args else signal.SIGINT)
        raise Refusal(
            status, tr("interrupted; the detect addresses of this host are as they were before")
        ) from interrupt


def signals_interrupt() -> None:
    """The first INT, TERM or HUP raises KeyboardInterrupt(number); later ones must not stop the cleaning up."""
    names = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def interrupt(number: int, _: FrameType | None) -> None:
        for name in names:
            signal.signal(name, signal.SIG_IGN)
        raise KeyboardInterrupt(number)

    for name in names:
        if signal.getsignal(name) is not signal.SIG_IGN:  # under nohup a hang-up stays ignored
            signal.signal(name, interrupt)


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    exits = tr("Exit: 0 no problem found, 1 problems found, 2 usage, or no card can be asked.")
    parser = Parser(PROGRAM, "\n".join([*script_help.page(project.path("scripts", PROGRAM)), "", exits]))
    parser.usage, parser.usage_of_mistake = (
        argparse.SUPPRESS,
        tr("bash scripts/check_network.sh [options] RANK_TABLE_FILE"),
    )
    words = tr("the rank table of the devices to check; - is standard input")
    parser.add_argument("table", metavar="RANK_TABLE_FILE", help=words)
    parser.option("hostfile", tr("; all of them are asked, over ssh and at once"))
    parser.option("ping")
    parser.option("server_id")
    parser.json()
    arguments.add_answer(parser)
    options = parser.parse_args(argv)
    if options.hostfile and options.server_id:
        parser.error(tr("--server_id is for one host; with --hostfile each finds its own by its address"))
    return options


def run(options: argparse.Namespace) -> int:
    """Asks, judges and prints; returns the exit code."""
    servers = cards_collect.read_servers(options.table)
    if not options.json:
        importlib.import_module("hccl_tools.show.terminal")  # ends the command without rich, before a card is asked
    lines: list[str] = []
    if options.hostfile:
        asker = ask.Asker(logins=hostfile.logins(options.hostfile), agent=ssh.agent(options.ssh), news=say)
        facts, lines = cards_collect.of_all_hosts(asker, servers, options.ping)
        silent = [server.server_id for server in servers if server.server_id not in facts]
    else:
        own = cards_collect.own_server(servers, options.server_id)
        if driver.find(driver.HCCN_TOOL) != driver.HCCN_TOOL:
            say(tr("uses {source}", source=driver.source(driver.HCCN_TOOL)))
        asked = cards_collect.questions(servers, own, cards_judge.partners(servers), options.ping)
        facts, silent = {own.server_id: cards.ask(asked)}, []
        for other in servers:
            if other is not own:
                say(
                    tr(
                        "server {server_id} is not this host and was not checked; --hostfile FILE checks all servers",
                        server_id=other.server_id,
                    )
                )
    for line in [*lines, *kept(facts)]:
        say(line)
    findings = cards_judge.judge(servers, facts)
    found = Network(servers=servers, facts=facts, findings=findings, silent=silent)
    if options.json:
        print(documents.json_text(document(found)))
    else:
        boundary.escape_missing_letters()
        print_text(found)
    return 1 if findings or silent or lines else 0


def kept(facts: Facts) -> Iterator[str]:
    """One line per server with devices that had no detect address before: the new one cannot be removed."""
    for server_id, devices in facts.items():
        new = ",".join(str(device) for device, card in sorted(devices.items()) if card.kept)
        if new:
            yield tr(
                "{server_id}: device {device} had no detect address before; the new one stays, because hccn_tool "
                "cannot remove it",
                server_id=server_id,
                device=new,
            )


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
