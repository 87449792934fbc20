"""The rank table against this host: its address, its devices and theirs."""

from __future__ import annotations

from hccl_tools.machine import hccn, host
from hccl_tools.table.address import is_one_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.difference import Value
    from tools.preflight.question import Question


def collect(question: Question) -> dict[str, Value]:
    """Nothing without a table, or if the asker does not know which server of it this host is."""
    place = question.place
    if not place:
        return {}
    here = host.devices()
    facts: dict[str, Value] = {
        "table_server": any(map(host.owns, place.names)),
        "table_devices": [device for device in place.devices if here and int(device) not in here],
    }
    wanted = {int(device): address for device, address in place.devices.items() if address and int(device) in here}
    if wanted and not question.quick:
        facts["table_addresses"] = _others(wanted, question.hccn_conf)
    return facts


def _others(wanted: dict[int, str], conf: str) -> list[str]:
    """``DEVICE: its address (in the table: ANOTHER)`` of the devices with another address."""
    try:
        found, _ = hccn.addresses(list(wanted), conf)
    except hccn.AddressError as error:
        return [str(error)]
    return [f"{device}: {found[device]} != {ip}" for device, ip in wanted.items() if not is_one_of(found[device], ip)]
