"""Collects the answers of the cards in a rank table: from this host, or from all hosts of a hostfile."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hccl_tools.build import from_legacy
from hccl_tools.check import verdict
from hccl_tools.common.language import tr
from hccl_tools.common.problem import errors
from hccl_tools.common.refusal import BAD, USAGE, Refusal, faulty, misused
from hccl_tools.common.words import one_line
from hccl_tools.hosts import answering, ask, cards, cards_judge
from hccl_tools.hosts.ask import Answer, Asker
from hccl_tools.hosts.cards import Question
from hccl_tools.hosts.cards_judge import Facts, Partners
from hccl_tools.machine import addresses, driver, host
from hccl_tools.table import rank_table
from hccl_tools.table.rank_table import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PING_SECONDS = 8  # more for each server of the table: every device is to ping one device of it
_NO_TABLE = "-"  # the argument of check_network.py that the question replaces


def read_servers(path: str) -> list[Server]:
    """The servers of the table at `path`, or -, which must be good and have addresses.  Raises Refusal."""
    shown = rank_table.shown_name(path)
    servers = servers_in(rank_table.bytes_of(path), shown)
    for server in servers:
        for device in server.devices:
            if device.device_ip is None:
                raise faulty(
                    "{path}: {place} has no device_ip; there is no network to check", path=shown, place=device.pointer
                )
    return servers


def servers_in(data: bytes, shown: str) -> list[Server]:
    """The servers of a table's bytes, which must be good; shown: its name in messages.  Raises Refusal."""
    table, problems = verdict.check_bytes(data)
    if errors(problems):
        raise Refusal(BAD, *(problem.line(shown) for problem in errors(problems)))
    servers = rank_table.servers(from_legacy.converted(table) or table)
    if not servers:
        raise faulty("{path} has no server_list; tables of versions 1.0 and 1.2 can be checked", path=shown)
    return servers


def of_all_hosts(asker: Asker, servers: Sequence[Server], ping: bool) -> tuple[Facts, list[str]]:
    """(what the cards of all hosts report, lines about hosts that did not answer).  Raises Refusal."""
    homes, lines = _homes(asker, servers)
    partners = cards_judge.partners(servers)

    def question(name: str) -> object:
        server = homes[name]
        return server.server_id, [asked.as_dict() for asked in questions(servers, server, partners, ping)]

    logins = {name: asker.logins[name] for name in asker.logins if name in homes}
    seconds = ask.SECONDS + (_PING_SECONDS * len(servers) if ping else 0)
    answers, more = _ask(asker.replace(logins=logins), question, seconds)
    found = {}
    for answer in answers:
        try:
            said = {int(device): cards.Card(**card) for device, card in (answer.content or {}).items()}
            if said:
                found[homes[answer.host].server_id] = said
        except (TypeError, ValueError, AttributeError):
            more.append(_other_version(answer.host))
    return found, lines + more


def _ask(asker: Asker, question: Callable[[str], object], seconds: int) -> tuple[list[Answer], list[str]]:
    try:
        return ask.ask(asker, ["check_network.py", _NO_TABLE], question, seconds)
    except ask.ClusterError as error:
        raise Refusal(USAGE, *error.lines) from error


def _other_version(name: str) -> str:
    return tr("{host} has another version of this project; install the same version on all hosts", host=name)


def _homes(asker: Asker, servers: Sequence[Server]) -> tuple[dict[str, Server], list[str]]:
    """({host: the server of the table that it is}, lines about hosts that are none).  Raises Refusal.

    A host whose name and address do not tell is asked.
    """
    by_name = {name: server for server in reversed(servers) for name in server.names}
    found = {name: by_name[name] for name in asker.logins if name in by_name}
    names = [name for name in asker.logins if name not in found]
    for name, address in addresses.of(names).items():
        if address in by_name:
            found[name] = by_name[address]
    claimed = {server.server_id for server in found.values()}
    unknown = {name: login for name, login in asker.logins.items() if name not in found}
    free = {server.host: server for server in servers if server.server_id not in claimed}
    lines: list[str] = []
    if unknown and not free:
        foreign = ask.names(list(unknown))
        lines = [tr("{hosts}: not a server of the rank table; remove it from the hostfile", hosts=foreign)]
    elif unknown:
        answers, lines = _ask(asker.replace(logins=unknown), lambda _name: list(free), ask.SECONDS)
        for answer in answers:
            if isinstance(answer.content, str) and answer.content in free:
                found[answer.host] = free[answer.content]
            elif answer.content is not None:
                lines.append(_other_version(answer.host))
    return found, lines + _twice(found)


def _twice(found: dict[str, Server]) -> list[str]:
    """One line for each two hosts that are one server, of which only the first is kept in `found`.

    Two checks of one card at the same time would restore each other's detect address.
    """
    first: dict[str, str] = {}
    lines = []
    for name, server in list(found.items()):
        if first.setdefault(server.server_id, name) != name:
            words = {"first": first[server.server_id], "second": name, "server": one_line(server.server_id)}
            lines.append(tr("{second} is server {server}, and so is {first}; remove one from the hostfile", **words))
            del found[name]
    return lines


def answer() -> int:
    """Answers the host that asks `of_all_hosts` with what this host's cards report; the exit code is 0 either way."""

    def ask_own(_name: str, asked: Any, _tell: Callable[[str], None]) -> object:
        if all(isinstance(name, str) for name in asked):  # which of them is this host?
            return own_server([Server("", name, [], [name]) for name in asked], None).server_id
        server_id, questions = asked
        own_server([Server("", server_id, [])], server_id)
        return {device: card.as_dict() for device, card in cards.ask([Question(**q) for q in questions]).items()}

    return answering.answer(ask_own)


def own_server(servers: Sequence[Server], server_id: str | None) -> Server:
    """The server that is this host, by `server_id` or by its address; it has an hccn_tool.  Raises Refusal."""
    if driver.find(driver.HCCN_TOOL) is None:
        why, remedy = driver.missing(driver.HCCN_TOOL)
        raise misused("{why}, which is needed to query the cards; {remedy}", why=why, remedy=remedy)
    if server_id:
        ours = [server for server in servers if server.server_id == server_id]
        if not ours:
            raise misused("--server_id {server_id} is not in the table", server_id=one_line(server_id))
    else:  # not by the addresses of its cards: whether these are right is what the check is about
        ours = [server for server in servers if any(map(host.owns, server.names))]
    if len(ours) != 1:
        names = ", ".join(one_line(server.server_id) for server in (ours or servers)[:5])
        what = tr("several servers of the table are") if ours else tr("no server of the table is")
        raise misused("{what} this host ({names}); say which one with --server_id ID", what=what, names=names)
    return ours[0]


def questions(servers: Sequence[Server], server: Server, partners: Partners, ping: bool) -> list[Question]:
    """The questions to the cards of `server`; with `ping`, about the other `servers` too."""
    others = [other.devices for other in servers if other is not server] if ping else []
    found = []
    for place, device in enumerate(server.devices):
        number = int(device.device_id)
        pings = [ip for devices in others if (ip := devices[place % len(devices)].device_ip)]
        found.append(Question(device=number, partner=partners.get((server.server_id, number)), pings=pings))
    return found
