"""The rank table of a check: which server each host is, so that each can be asked about its own part."""

from __future__ import annotations

import hashlib

from hccl_tools.check import verdict
from hccl_tools.common.language import tr
from hccl_tools.common.problem import errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import some
from hccl_tools.hosts import cards_collect
from hccl_tools.machine import addresses
from hccl_tools.table import rank_table
from tools.launch.hosts import rank_list_servers
from tools.preflight.difference import BLOCKS, Difference, Group
from tools.preflight.facts.files import DIGITS
from tools.preflight.question import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hccl_tools.table.rank_table import Server

_MOST_NAMED = 5


class Table(Record):
    """A rank table: its servers, and the beginning of its file's SHA-256."""

    path: str
    servers: Sequence[Server]
    digest: str

    @property
    def first(self) -> str:
        """The server of rank 0, as other hosts reach it."""
        owners = (server for server in self.servers for device in server.devices if device.rank_id == "0")
        return next(owners, self.servers[0]).host


def read(path: str, hosts: Sequence[rank_list_servers.Slots] = ()) -> Table:
    """The table at `path`, or of - on stdin.  Raises Refusal if it cannot be read or is bad.

    hosts: those of the job, as far as they are listed: a table of version 2.0 does not name them.
    """
    data = rank_table.bytes_of(path)
    try:
        servers = _listed(data, rank_table.shown_name(path), hosts) or cards_collect.servers_in(
            data, rank_table.shown_name(path)
        )
    except Refusal as error:
        raise Refusal(REFUSED, *error.lines) from error
    return Table(path=path, servers=servers, digest=hashlib.sha256(data).hexdigest()[:DIGITS])


def _listed(data: bytes, shown: str, hosts: Sequence[rank_list_servers.Slots]) -> Sequence[Server]:
    """The servers of a good table of version 2.0, which are these hosts; none of another one.  Raises Refusal."""
    table, problems = verdict.check_bytes(data)
    if not rank_list_servers.is_list(table) or errors(problems):
        return ()
    if not hosts:
        raise rank_list_servers.needed(shown, "-H")
    found = rank_list_servers.of(table, hosts, shown, "-H")
    known = addresses.of([server.server_id for server in found])
    names = ([known[server.server_id] or server.server_id, *server.names] for server in found)
    return [server._replace(names=list(dict.fromkeys(each))) for server, each in zip(found, names)]


def homes(table: Table, hosts: Sequence[str]) -> dict[str, Server]:
    """{host: its server}, by the names and the addresses of the hosts."""
    by_name = {name: server for server in reversed(table.servers) for name in server.names}
    found = {name: by_name[name] for name in hosts if name in by_name}
    unknown = addresses.of([name for name in hosts if name not in found])
    found.update({name: by_name[address] for name, address in unknown.items() if address in by_name})
    return found


def place(server: Server) -> Place:
    """The part of a question that is about the server."""
    return Place(names=list(server.names), devices={str(device): ip for device, ip in server.device_ips().items()})


def unmatched(table: Table, hosts: Sequence[str], found: Mapping[str, Server]) -> Iterator[Difference]:
    """Hosts that the table does not have, and servers of it that are not among the hosts."""
    foreign = [name for name in hosts if name not in found]
    if foreign:
        text = tr("the rank table does not have this host")
        remedy = tr("build the table again, or take them out of the list of hosts")
        yield Difference(key="table", level=BLOCKS, groups=[Group(hosts=foreign, text=text)], remedy=remedy)
    taken = {server.pointer for server in found.values()}
    missing = [server.host for server in table.servers if server.pointer not in taken]
    if missing:
        text = tr("this server of the rank table is not among the hosts")
        remedy = tr("add to the list of hosts: {hosts}", hosts=some(missing, _MOST_NAMED))
        yield Difference(key="table", level=BLOCKS, groups=[Group(hosts=missing, text=text)], remedy=remedy)
