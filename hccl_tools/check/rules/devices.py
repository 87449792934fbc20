"""Rules for device ids and ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hccl_tools.check.rules.registry import LISTED, WITH_DEVICES, Findings, is_number, repeated, rule
from hccl_tools.common.language import tr
from hccl_tools.common.problem import WARNING
from hccl_tools.common.words import count, shown
from hccl_tools.table.device_range import MAX_DEVICE_ID
from hccl_tools.table.view import View, number, texts

_LARGEST_PORT = 65535
_RANKED = (*LISTED, "legacy_lab", "v1.1")


@rule("duplicate-device", WITH_DEVICES)
def device_listed_twice(view: View) -> Findings:
    """A server lists the same device_id twice.

    Why: HCCL: "device id repeat for one server. Please check ranktable".
    Remedy: list each device of a server once.
    """
    for server in view.servers:
        yield from _repeated_on(server.devices, view, view.ids, "device_id")


def _repeated_on(devices: Sequence[int], view: View, column: Sequence[object], key: str) -> Findings:
    def counts(value: object) -> bool:
        return 0 < value <= _LARGEST_PORT if isinstance(value, int) else is_number(value)

    yield from repeated(
        [column[device] for device in devices], lambda n: view.place(devices[n], key), key, counts=counts
    )


@rule("bad-value", LISTED)
def device_id_too_large(view: View) -> Findings:
    """device_id is above 64.

    Why: HCCL's newest parser accepts device ids below 65.
    Remedy: write the physical id that npu-smi shows, 0 to 64.
    """
    for device, found in ids_above(view, MAX_DEVICE_ID):
        yield view.place(device, "device_id"), tr("device_id {found} is too large", found=found)


def ids_above(view: View, largest: int) -> Iterator[tuple[int, int]]:
    """(device, its id) of the devices whose id is above `largest`."""
    if max((found for found in set(view.id_numbers) if found is not None), default=0) > largest:
        for device, found in enumerate(view.id_numbers):
            if found is not None and found > largest:
                yield device, found


@rule("bad-value", LISTED)
def port_impossible(view: View) -> Findings:
    """A port is 0 or above 65535.

    Why: HCCL's manual: ports are 1 to 65535.
    Remedy: write a free port from 1024 to 65535.
    """
    for place, key, port in _ports(view):
        if not 1 <= port <= _LARGEST_PORT:
            yield place, tr("{key} {port} is not a port number", key=key, port=port)


@rule("low-port", LISTED, WARNING)
def port_reserved(view: View) -> Findings:
    """A port is below 1024.

    Why: HCCL's manual: avoid 1 to 1023, which are reserved for the system.
    Remedy: use a port from 1024 to 65535, such as 16666.
    """
    for place, key, port in _ports(view):
        if 1 <= port < 1024:
            yield place, tr("{key} {port} is reserved for the system", key=key, port=port)


def _ports(view: View) -> Iterator[tuple[str, str, int]]:
    for device, entry in enumerate(view.devices):
        if len(entry) > 3:  # most devices have an id, an address and a rank, and no port
            for key in ("device_port", "host_port", "backup_device_port"):
                port = number(entry.get(key))
                if port is not None:
                    yield view.place(device, key), key, port


@rule("port-clash", LISTED)
def host_port_used_twice(view: View) -> Findings:
    """Two devices of a server have the same host_port.

    Why: HCCL's manual: host_port is distinct within a server, because every rank listens on its own port.
    Remedy: give each device of the server its own host_port.
    """
    ports = texts(view.devices, "host_port")
    numbers = [number(port) for port in ports] if any(ports) else []
    for server in view.servers if numbers else ():
        yield from _repeated_on(server.devices, view, numbers, "host_port")


@rule("duplicate-rank", _RANKED)
def rank_given_twice(view: View) -> Findings:
    """Two devices have the same rank_id.

    Why: HCCL: every rank id from 0 to N-1 occurs once.
    Remedy: number the ranks 0, 1, 2 ... each once.
    """
    yield from repeated(view.ranks, view.rank_place, "rank_id", counts=is_number)


@rule("rank-gap", _RANKED)
def rank_left_out(view: View) -> Findings:
    """A rank id from 0 to N-1 is missing, and a larger one exists.

    Why: HCCL: rank ids are 0 to N-1 without a gap.
    Remedy: number the ranks without a gap.
    """
    yield from gap(view.rank_numbers, "/group_list" if view.format == "legacy_lab" else f"/{view.list_key}")


def gap(numbers: Sequence[int | None], place: str) -> Findings:
    """What a rule yields when the rank ids `numbers` (None: not a number) do not run from 0 without a gap."""
    ranks = {rank for rank in numbers if rank is not None}
    if not ranks or max(ranks) < len(numbers):
        return  # then a gap comes from repeated or malformed ranks, which other rules report
    missing = next(rank for rank in range(len(numbers)) if rank not in ranks)
    last = len(numbers) - 1
    text = tr(
        "{ranks}, so rank_id runs from 0 to {last}, but rank {missing} is missing",
        ranks=count(len(numbers), "rank"),
        last=last,
        missing=missing,
    )
    yield place, text, tr("number the ranks without a gap; rank {rank} is too large", rank=max(ranks))


@rule("rank-interleave", (*LISTED, "legacy_lab"))
def ranks_interleave(view: View) -> Findings:
    """The ranks of two servers interleave.

    Why: HCCL's manual: {0,1,2,3} and {4,5,6,7} are good, {0,1,2,7} and {3,4,5,6} are not.
    Remedy: give each server one block of ranks.
    """
    blocks = view.rank_blocks
    for (_, last, before), (first, _, server) in zip(blocks, blocks[1:]):
        if first <= last:
            yield (
                server.pointer,
                tr(
                    "the ranks of server {name} and of {before} interleave",
                    name=shown(server.name),
                    before=shown(before.name),
                ),
            )


@rule("look-alike", LISTED, WARNING)
def no_rank_anywhere(view: View) -> Findings:
    """No device has a rank_id.

    Why: llm-datadist's local tables (comm_res) look like 1.0 and 1.2 without rank_id; HCCL cannot read them.
    Remedy: give the file to llm-datadist, or build a table with hccl_tools/hccl_tools.py.
    """
    if view.devices and not any("rank_id" in device for device in view.devices):
        yield "", tr("no device has a rank_id, as in the local tables of llm-datadist, which HCCL itself cannot read")
