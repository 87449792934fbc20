"""A rank table as a document: builds, names, writes and reads it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from hccl_tools.common import documents, nearly
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.problem import Problem, pointer
from hccl_tools.common.record import Row
from hccl_tools.common.refusal import USAGE, Refusal, misused
from hccl_tools.common.words import one_line
from hccl_tools.table.address import packed
from hccl_tools.table.view import names_of, objects, text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO, Any, NoReturn


MAX_BYTES = 1 << 28  # 256 MiB: ten times the table of 100,000 ranks; more than that is a mistake
STDIN = "-"


class Device(Row):
    """A device of a server: its JSON pointer and its texts; "" for a required text that is missing."""

    pointer: str
    device_id: str
    device_ip: str | None
    rank_id: str


class Server(Row):
    """A server of a version 1.0 or 1.2 table: its JSON pointer, name ("" if missing) and devices.

    names: by what its host may be known, see view.names_of.
    """

    pointer: str
    server_id: str
    devices: list[Device]
    names: Sequence[str] = ()

    @property
    def host(self) -> str:
        """The address at which other hosts reach it: its first IPv4 address, otherwise its name."""
        return next((name for name in self.names if len(packed(name)) == 4), self.server_id.strip())

    def device_ips(self) -> dict[int, str | None]:
        """{device id: device_ip}, of a table without errors."""
        return {int(device.device_id): device.device_ip for device in self.devices}


def build(devices: Sequence[tuple[int, str | None]], server_id: str) -> JsonObject:
    """The version 1.0 table of one server, in the key order of MindSpore's hccl_tools.py.

    devices: (device id, address) of each rank, rank 0 first.
    """
    entries = []
    for rank, (device_id, device_ip) in enumerate(devices):
        entry = {"device_id": str(device_id)}
        if device_ip is not None:
            entry["device_ip"] = device_ip
        entry["rank_id"] = str(rank)
        entries.append(entry)
    return {
        "version": "1.0",
        "server_count": "1",
        "server_list": [{"server_id": server_id, "device": entries, "host_nic_ip": "reserve"}],
        "status": "completed",
    }


def file_name(device_ids: Sequence[int], server_id: str) -> str:
    """The name that MindSpore's hccl_tools.py gives a table: ``hccl_4p_4567_127.0.0.1.json``."""
    return f"hccl_{len(device_ids)}p_{''.join(map(str, device_ids))}_{server_id}.json"


def dump(table: object) -> str:
    """The table as text, byte for byte as upstream writes it: indented by 4, no final newline."""
    return json.dumps(table, indent=4, ensure_ascii=False)


def write(text: str, path: str) -> None:
    """Writes `text` to `path` whole or not at all; a link is followed, not replaced.  Raises OSError."""
    documents.write_whole(text, path)


class NotReadable(Refusal):
    """The file cannot be read, so there is no verdict on a table.  `reason`: why, without the file's name."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(USAGE, f"{one_line(path)} {reason}")
        self.reason = reason


def read(path: str) -> tuple[Any, list[Problem]]:
    """(document, problems) of the file `path`; the document is None when it is not JSON.  Raises NotReadable."""
    return parse(read_bytes(path))


def read_bytes(path: str) -> bytes:
    """The bytes of the file `path`; a file that is too large is not read.  Raises NotReadable."""
    try:
        if os.path.isdir(path):
            raise NotReadable(path, tr("is a folder; name the table's file"))
        _refuse_size(os.stat(path).st_size, path)
        with open(path, "rb") as file:
            return read_stream(file, path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = tr("cannot be read: {reason}", reason=strerror(error))
        raise NotReadable(path, reason + nearly.question(path)) from error


def read_stream(file: IO[bytes], name: str = "stdin") -> bytes:
    """The bytes of an open file, which may be an endless pipe.  Raises NotReadable."""
    data = file.read(MAX_BYTES + 1)
    _refuse_size(len(data), name)
    return data


def _refuse_size(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise NotReadable(
            name, tr("has {size} bytes or more; a rank table has at most {limit}", size=size, limit=MAX_BYTES)
        )


def parse(data: bytes) -> tuple[Any, list[Problem]]:
    """(document, problems) of a table's bytes; the document is None when they are not JSON."""
    repeated = []

    def members(pairs: list[tuple[str, Any]]) -> JsonObject:
        members_ = dict(pairs)
        if len(members_) != len(pairs):
            repeated.append(True)
        return members_

    try:
        content = data.decode("utf-8")
        document = json.loads(content, parse_constant=_no_such_number, object_pairs_hook=members)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or a number too long for int()
        from hccl_tools.table import json_faults  # only a bad table needs it

        return None, [json_faults.explain(data, error)]
    if not repeated:
        return document, []
    from hccl_tools.table import json_faults

    return None, json_faults.repeated(content)


def _no_such_number(name: str) -> NoReturn:
    raise ValueError(tr("{text} is not a number in JSON", text=name))


def servers_of_ranks(table: object, size: int | None = None) -> list[Server]:
    """The servers of a good version 2.0 table, which lists ranks only; they have no names.

    size: the ranks of each, where that is known; otherwise a device that comes again is that of the next server.
    """
    entries = [(int(rank["rank_id"]), str(rank["device_id"]), number) for number, rank in objects(table, "rank_list")]
    found: list[list[Device]] = []
    for rank, device, number in sorted(entries):
        last = found[-1] if found else []
        if not last or len(last) == size or not size and device in [each.device_id for each in last]:
            found.append([])
        found[-1].append(Device(pointer("rank_list", number), device, None, str(rank)))
    return [Server(devices[0].pointer, "", devices) for devices in found]


def servers(table: object) -> list[Server]:
    """The servers of a 1.0 or 1.2 table; entries that are not objects are left out: the schema reports those."""
    found = []
    for number, server in objects(table, "server_list"):
        place = pointer("server_list", number)
        devices = [
            Device(
                f"{place}/device/{index}",
                text(device, "device_id") or "",
                text(device, "device_ip") or None,
                text(device, "rank_id") or "",
            )
            for index, device in objects(server, "device")
        ]
        name = text(server, "server_id") or ""
        found.append(Server(place, name, devices, names_of(server, name)))
    return found


def shown_name(path: str) -> str:
    """Its name in messages."""
    return tr("standard input") if path == STDIN else one_line(path)


def bytes_of(path: str) -> bytes:
    """Its bytes, up to the size limit of a file.  Raises rank_table.NotReadable."""
    if path != STDIN:
        return read_bytes(path)
    name = shown_name(path)
    if sys.stdin is None:
        raise NotReadable(name, tr("is closed; name a file, or add: <FILE"))
    try:
        return read_stream(sys.stdin.buffer, name)
    except OSError as error:  # it is a folder
        raise NotReadable(name, tr("cannot be read: {reason}", reason=strerror(error))) from error


def read_named(path: str) -> tuple[Any, list[Problem]]:
    """(document, problems), as rank_table.read.  Raises rank_table.NotReadable."""
    return parse(bytes_of(path))


def refuse_twice(paths: Sequence[str]) -> None:
    """Raises Refusal where standard input would be read a second time: there is nothing left then."""
    if paths.count(STDIN) > 1:
        raise misused("standard input can be read once; write - once, and name files for the other tables")
