"""The questions for a pod: its own command has most of them; the hub adds only what all pods must have in common.

The hub's text is untrusted input: with it a pod reads no file and calls no address that a check would not need.
"""

from __future__ import annotations

import os
import re

from hccl_tools.common.language import tr
from hccl_tools.hosts import hostfile
from hccl_tools.machine import driver
from hccl_tools.table.address import family
from tools.attempts.wire import Lost
from tools.launch.engines import hccl_ports
from tools.launch.request import MAX_RANKS
from tools.preflight.links import pairs
from tools.preflight.question import Question

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from tools.preflight.check import Job
    from tools.preflight.pods.place import Place

# Variables that each pod has for itself.
OF_EACH = (
    "ASCEND_VISIBLE_DEVICES",
    "HCCL_IF_IP",
    "HCCL_LOGIC_SUPERPOD_ID",
    "MS_NODE_ID",
    "MS_NODE_RANK",
    "MS_NODE_TIMEOUT",
    "MS_ROLE",
    "MS_SCHED_HOST",
)
_TOLD = ("host", "hosts", "first", "first_at", "files", "salt", "links")
_LINKS = ("host", "nonce", "seconds", "quiet", "address", "listens", "expects", "connects")
_HEX = re.compile(r"[0-9a-f]{1,128}")
_MOST_FILES, _LONGEST_PATH = 10_000, 4096
_MOST_PORTS, _MOST_CALLS, _MOST_GUESTS = 64, 4096, 1 << 18
_MOST_SECONDS = 60.0
_LONGEST_NAME = 253


def own(job: Job, place: Place) -> Question:
    """The question according to this pod's own command."""
    return Question(
        host="",
        hosts=1,
        first="",
        folder=os.getcwd(),
        log_dir=os.path.abspath(job.log_dir),
        data=os.path.abspath(job.data) if job.data else "",
        files=job.program.files,
        modules=job.program.modules,
        set_here=OF_EACH,
        cann=driver.active_cann(),
        hccl=hccl_ports.base() if job.hccl is None else job.hccl,
        devices=place.devices if job.devices is None else job.devices,
        slots=place.slots,
        ports=job.ports,
        hccn_conf=os.path.abspath(job.hccn_conf),
        table=place.table,
        place=place.server,
        quick=job.quick,
    )


def told(question: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a question that goes to a pod."""
    return {name: question[name] for name in _TOLD}


def whole(mine: Question, theirs: Any) -> Question:
    """The question: what this pod reports itself, and what the hub has told.  Raises Lost if that has another form."""
    try:
        return mine.replace(
            host=_name(theirs["host"]),
            hosts=_number(theirs["hosts"], 1, MAX_RANKS),
            first=_name(theirs["first"]),
            first_at=_address(theirs["first_at"]) if theirs["first_at"] else "",
            salt=_hex(theirs["salt"]),
            files=_files(theirs["files"], mine),
            links=None if theirs["links"] is None or mine.quick else _links(theirs["links"]),
        )
    except (ValueError, TypeError, KeyError) as error:
        raise Lost(tr("it sent an unknown message")) from error


def _name(value: Any) -> str:
    if isinstance(value, str) and len(value) <= _LONGEST_NAME and (family(value) or not hostfile.fault_of_host(value)):
        return value
    raise ValueError(value)


def _address(value: Any) -> str:
    if isinstance(value, str) and family(value):
        return value
    raise ValueError(value)


def _hex(value: Any) -> str:
    if isinstance(value, str) and _HEX.fullmatch(value):
        return value
    raise ValueError(value)


def _number(value: Any, least: float, most: float) -> Any:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and least <= value <= most:
        return value
    raise ValueError(value)


def _port(value: Any) -> int:
    if type(value) is int and 1 <= value <= 65535:
        return value
    raise ValueError(value)


def _list(value: Any, most: int, each: Callable[[Any], Any]) -> list[Any]:
    if isinstance(value, list) and len(value) <= most:
        return [each(entry) for entry in value]
    raise ValueError(value)


def _files(value: Any, mine: Question) -> dict[str, str]:
    """Those of the hub's files that are in a folder of the files that this pod's command names."""
    if not isinstance(value, dict) or len(value) > _MOST_FILES:
        raise ValueError(value)
    folders = tuple({os.path.dirname(path) + os.sep for path in mine.files})
    return {
        path: _hex(digest)
        for path, digest in value.items()
        if len(path) <= _LONGEST_PATH and path == os.path.normpath(path) and path.startswith(folders)
    }


def _links(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or set(value) != set(_LINKS):
        raise ValueError(value)
    return {
        "host": _name(value["host"]),
        "nonce": _hex(value["nonce"]),
        "seconds": _number(value["seconds"], 0, _MOST_SECONDS),
        "quiet": _number(value["quiet"], 0, _MOST_SECONDS),
        "address": _address(value["address"]),
        "listens": _list(value["listens"], _MOST_PORTS, _port),
        "expects": _list(value["expects"], _MOST_GUESTS, _expected),
        "connects": _list(value["connects"], _MOST_CALLS, _call),
    }


def _expected(value: Any) -> list[Any]:
    host, port = value
    return [_name(host), _port(port)]


def _call(value: Any) -> list[Any]:
    host, address, port, what = value
    if what not in (pairs.FULL, pairs.HELLO, pairs.OPEN):
        raise ValueError(what)
    return [_name(host), _address(address), _port(port), what]
