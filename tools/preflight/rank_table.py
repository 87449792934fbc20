"""The rank table of a check: which server each host is, so that each can be asked about its own part."""

from __future__ import annotations

import hashlib

from hccl_tools.build import from_legacy
from hccl_tools.check import verdict
from hccl_tools.common.language import tr
from hccl_tools.common.problem import errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import some
from hccl_tools.machine import addresses
from hccl_tools.table import given, rank_table
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


def read(path: str) -> Table:
    """The table at `path`, or of - on stdin.  Raises Refusal if it cannot be read or is bad."""
    data = given.read_bytes(path)
    table, problems = verdict.check_bytes(data)
    shown = given.shown(path)
    if errors(problems):
        raise Refusal(REFUSED, *(problem.line(shown) for problem in errors(problems)))
    servers = rank_table.servers(from_legacy.converted(table) or table)
    if not servers:
        text = tr("{path} has no server_list; tables of versions 1.0 and 1.2 can be checked", path=shown)
        raise Refusal(REFUSED, text)
    return Table(path=path, servers=servers, digest=hashlib.sha256(data).hexdigest()[:DIGITS])


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
    """Hosts that are no server of the table, and servers that are none of the hosts."""
    foreign = [name for name in hosts if name not in found]
    if foreign:
        text = tr("no server of the rank table")
        remedy = tr("build the table again, or take them out of the list of hosts")
        yield Difference(key="table", level=BLOCKS, groups=[Group(hosts=foreign, text=text)], remedy=remedy)
    taken = {server.pointer for server in found.values()}
    missing = [server.host for server in table.servers if server.pointer not in taken]
    if missing:
        text = tr("none of the hosts is this server of the rank table")
        remedy = tr("add to the list of hosts: {hosts}", hosts=some(missing, _MOST_NAMED))
        yield Difference(key="table", level=BLOCKS, groups=[Group(hosts=missing, text=text)], remedy=remedy)
