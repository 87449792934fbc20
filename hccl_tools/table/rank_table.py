"""A rank table as a document: build it, name it, write it, read it back."""

import json
import os
from collections import namedtuple

from hccl_tools.common.problem import pointer
from hccl_tools.table.view import objects, text

MAX_BYTES = 1 << 28  # 256 MiB: ten times the table of 100,000 ranks; more than that is a mistake

Server = namedtuple("Server", "pointer server_id devices")
Device = namedtuple("Device", "pointer device_id device_ip rank_id")


def build(devices, server_id):
    """The version 1.0 table of one server, in the key order of MindSpore's hccl_tools.py.

    devices: (device id as int, address as str or None) of each rank, rank 0 first.
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


def file_name(device_ids, server_id):
    """The name that MindSpore's hccl_tools.py gives a table: ``hccl_4p_4567_127.0.0.1.json``."""
    return f"hccl_{len(device_ids)}p_{''.join(map(str, device_ids))}_{server_id}.json"


def dump(table):
    """The table as text, byte for byte as upstream writes it: indented by 4, no final newline."""
    return json.dumps(table, indent=4, ensure_ascii=False)


def write(text, path):
    """Write `text` to `path` whole or not at all; a link is followed, not replaced.  Raises OSError."""
    target = os.path.realpath(path)
    draft = f"{target}.{os.getpid()}.part"
    with open(draft, "x", encoding="utf-8") as file:  # a draft that is there is another's: not ours to remove
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.replace(draft, target)
        except BaseException:
            os.unlink(draft)
            raise


class NotReadable(Exception):
    """The file cannot be read at all: the text says why (exit 2, not a verdict on a table)."""


def read(path):
    """(document, problems) of the file `path`; the document is None when it is not JSON."""
    return parse(read_bytes(path))


def read_bytes(path):
    """The bytes of the file `path`; one that is too large is refused before it is read."""
    try:
        if os.path.isdir(path):
            raise NotReadable("is a folder; name the table's file")
        _refuse_size(os.stat(path).st_size)
        with open(path, "rb") as file:
            return read_stream(file)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise NotReadable(f"cannot be read: {getattr(error, 'strerror', None) or error}") from error


def read_stream(file):
    """The bytes of an open file, which may be a pipe: one that does not end is refused as well."""
    data = file.read(MAX_BYTES + 1)
    _refuse_size(len(data))
    return data


def _refuse_size(size):
    if size > MAX_BYTES:
        raise NotReadable(f"has {size} bytes or more; a rank table has at most {MAX_BYTES}")


def parse(data):
    """(document, problems) of a table's bytes."""
    repeated = []

    def members(pairs):
        members_ = dict(pairs)
        if len(members_) != len(pairs):
            repeated.append(True)
        return members_

    try:
        content = data.decode("utf-8")
        document = json.loads(content, parse_constant=_no_such_number, object_pairs_hook=members)
        if not repeated:
            return document, []
        error = None
    except (ValueError, RecursionError) as caught:  # not UTF-8, not JSON, or a number too long for int()
        error = caught
    from hccl_tools.table import json_faults  # only what is wrong needs to be explained

    return None, json_faults.repeated(content) if error is None else [json_faults.explain(data, error)]


def _no_such_number(name):
    raise ValueError(f"{name} is no number in JSON")


def servers(table):
    """The well-formed servers of a 1.0 or 1.2 table as Server, their devices as Device.

    Fields that are missing or no strings are None, entries that are no objects are left out: the
    schema reports those, and the rules look at all the rest.
    """
    found = []
    for number, server in objects(table, "server_list"):
        place = pointer("server_list", number)
        devices = [
            Device(f"{place}/device/{index}", *(text(device, key) for key in ("device_id", "device_ip", "rank_id")))
            for index, device in objects(server, "device")
        ]
        found.append(Server(place, text(server, "server_id"), devices))
    return found
