"""A rank table as a document: build it, name it, write it, read it back."""

import json
import os
from collections import namedtuple

from hccl_tools.problem import Problem, one_line, pointer

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
    try:
        if os.path.isdir(path):
            raise NotReadable("is a folder; name the table's file")
        size = os.stat(path).st_size
        if size > MAX_BYTES:
            raise NotReadable(f"has {size} bytes; a rank table has at most {MAX_BYTES}")
        with open(path, "rb") as file:
            return parse(file.read())
    except OSError as error:
        raise NotReadable(f"cannot be read: {error.strerror}") from error


def parse(data):
    """(document, problems) of a table's bytes."""
    if not data.strip():
        return None, [_not_json("the file is empty", "build the table with hccl_tools/hccl_tools.py")]
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_no_such_number), []
    except UnicodeDecodeError as error:
        return None, [_not_json(f"byte {error.start + 1} is not UTF-8", "save the file as UTF-8")]
    except RecursionError:
        return None, [_not_json("it is nested too deeply", "a rank table has five levels")]
    except ValueError as error:  # JSONDecodeError, or a number too long for int()
        return None, [_syntax_problem(data.decode("utf-8"), error)]


def _no_such_number(name):
    raise ValueError(f"{name} is no number in JSON")


def _syntax_problem(text, error):
    if text.startswith("\ufeff"):
        return _not_json("the file starts with a byte-order mark", "save it as UTF-8 without one")
    line = getattr(error, "lineno", 1)
    column = getattr(error, "colno", 1)
    found = text.splitlines()[line - 1] if line <= len(text.splitlines()) else ""
    where = f"line {line}, column {column}"
    if found[column - 1 :].lstrip().startswith(("//", "/*")):
        return _not_json(f"{where}: a comment; JSON has none", "delete the comments")
    if found[column - 1 : column] in ("]", "}") and text[: error.pos].rstrip().endswith(","):
        return _not_json(f"{where}: a comma before '{found[column - 1]}'", "delete that comma")
    rest = one_line(found[column - 1 : column + 29].strip()) or "the end of the line"
    return _not_json(f"{where}: {getattr(error, 'msg', error)}, found {rest}", "write JSON there")


def _not_json(text, remedy):
    return Problem("not-json", "", text, remedy)


def servers(table):
    """The well-formed servers of a 1.0 table as Server, their devices as Device.

    Fields that are missing or no strings are None, entries that are no objects are left out: the
    schema reports those, and the rules look at all the rest.
    """
    found = []
    for number, server in objects(table, "server_list"):
        place = pointer("server_list", number)
        devices = [
            Device(f"{place}/device/{index}", *(_text(device, key) for key in ("device_id", "device_ip", "rank_id")))
            for index, device in objects(server, "device")
        ]
        found.append(Server(place, _text(server, "server_id"), devices))
    return found


def objects(parent, key):
    """(index, entry) of the entries of the list `parent[key]` that are objects; none if it is no list."""
    entries = parent.get(key) if isinstance(parent, dict) else None
    if isinstance(entries, list):
        for index, entry in enumerate(entries):
            if isinstance(entry, dict):
                yield index, entry


def _text(entry, key):
    value = entry.get(key)
    return value if isinstance(value, str) else None
