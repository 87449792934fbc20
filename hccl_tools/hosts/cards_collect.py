"""What the cards of a rank table's servers say: those of this host, or of all hosts of a hostfile."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Sequence

from hccl_tools.check import verdict
from hccl_tools.common.language import tr
from hccl_tools.common.problem import errors
from hccl_tools.common.refusal import BAD, USAGE, Refusal
from hccl_tools.common.words import one_line
from hccl_tools.hosts import ask, cards, cards_judge
from hccl_tools.hosts.cards_judge import Facts
from hccl_tools.machine import host, programs
from hccl_tools.table import rank_table


def read_servers(path: str) -> list[rank_table.Server]:
    """The servers of the table at `path`, which must be good and have addresses.  Raises Refusal."""
    table, problems = verdict.check_file(path)
    if errors(problems):
        raise Refusal(BAD, *(problem.line(path) for problem in errors(problems)))
    servers = rank_table.servers(table)
    if not servers:
        raise Refusal(
            BAD, tr("{path} has no server_list; tables of versions 1.0 and 1.2 can be checked", path=one_line(path))
        )
    for server in servers:
        for device in server.devices:
            if device.device_ip is None:
                raise Refusal(
                    BAD,
                    tr(
                        "{path}: {place} has no device_ip; there is no network to check",
                        path=one_line(path),
                        place=device.pointer,
                    ),
                )
    return servers


def of_all_hosts(hostfile: str, servers: Sequence[rank_table.Server], ping: bool) -> tuple[Facts, list[str]]:
    """(what the cards of all hosts of the hostfile say, lines about hosts that did not answer).  Raises Refusal."""
    # The hosts may lack the file, so the table is an argument: without JSON pointers, because its length is limited.
    needed = [(server.server_id, [device[1:] for device in server.devices]) for server in servers]
    data = base64.b64encode(zlib.compress(json.dumps(needed).encode(), 9)).decode()
    try:
        answers, lines = ask.ask(hostfile, "check_network.py", [*["--ping"][:ping], data])
    except ask.ClusterError as error:
        raise Refusal(USAGE, *error.lines) from error
    found = {}
    for answer in answers:
        try:
            server_id, devices = answer.content or ("", {})
            found[server_id] = {int(device): cards.Card(**said) for device, said in devices.items()}
        except (TypeError, ValueError, AttributeError):
            lines.append(
                tr(
                    "{host}: another version of this project answers there; install the same on all hosts",
                    host=answer.host,
                )
            )
    found.pop("", None)  # of hosts that have told why they cannot answer
    return found, lines


def answer(nonce: str, hosts: Sequence[str], data: str, ping: bool) -> int:
    """Answers the host that asks `of_all_hosts` with what this host's cards say; the exit code is 0 either way."""
    needed = json.loads(zlib.decompress(base64.b64decode(data)))
    servers = [
        rank_table.Server("", name, [rank_table.Device("", *device) for device in devices]) for name, devices in needed
    ]

    def ask_own(entry: str | None, tell: Callable[[str], None]) -> object:
        server = own_server(servers, entry if entry in [server.server_id for server in servers] else None)
        return [server.server_id, {device: card.as_dict() for device, card in of_server(servers, server, ping).items()}]

    return ask.answer(nonce, hosts, ask_own)


def own_server(servers: Sequence[rank_table.Server], server_id: str | None) -> rank_table.Server:
    """The server that is this host, by `server_id` or by its address; it has an hccn_tool.  Raises Refusal."""
    if not programs.on_path("hccn_tool"):
        text = tr("hccn_tool is not on PATH, and only it can ask the cards; it is in /usr/local/Ascend/driver/tools")
        raise Refusal(USAGE, text)
    if server_id:
        ours = [server for server in servers if server.server_id == server_id]
        if not ours:
            raise Refusal(USAGE, tr("--server_id {server_id} is not in the table", server_id=one_line(server_id)))
    else:  # not by the addresses of its cards: whether these are right is what the check is about
        ours = [server for server in servers if host.owns(server.server_id)]
    if len(ours) != 1:
        names = ", ".join(one_line(server.server_id) for server in (ours or servers)[:5])
        what = tr("several servers of the table are") if ours else tr("no server of the table is")
        raise Refusal(
            USAGE, tr("{what} this host ({names}); say which one with --server_id ID", what=what, names=names)
        )
    return ours[0]


def of_server(servers: Sequence[rank_table.Server], server: rank_table.Server, ping: bool) -> dict[int, cards.Card]:
    """What the cards of `server`, which is this host, say; with `ping`, about the other `servers` too."""
    partners = cards_judge.partners(servers)
    others = [other.devices for other in servers if other is not server] if ping else []
    questions = []
    for place, device in enumerate(server.devices):
        number = int(device.device_id)
        pings = [ip for devices in others if (ip := devices[place % len(devices)].device_ip)]
        partner = partners.get((server.server_id, number))
        questions.append(cards.Question(device=number, partner=partner, pings=pings))
    return cards.ask(questions)
