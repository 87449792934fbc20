"""The commands by which others keep jobs off hosts: printed, never run.

The names of hosts are those of the check, which hostfile.fault_of_host has let pass.  Batch systems may call them
otherwise, which the text says.
"""

from __future__ import annotations

import json

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Row
from hccl_tools.hosts import node_sets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_REASON = "failed a trial of preflight.sh"
# The sender and the code must be in publicFaultConfiguration.json of ClusterD, or in its publicCustomization.json:
# others are dropped.  Of MindCluster 7.3 and 26.0; 110001010 is a fault of a node that it takes as sub-healthy.
# The form is that of the manual's page "ConfigMap" of public faults (hiascend.com/document, MindCluster 730,
# dlug_api_106), the limits are those of ClusterD's own check (mind-cluster, publicfault/checker.go).
_SENDER, _CODE = "fd-online", "110001010"
_MOST_HOSTS = 1000  # of one fault
_MOST_DEVICES = 32  # of a host, from 0


class Advice(Row):
    """One thing to do: for whom, and the command or the document."""

    kind: str  # exclude, sbatch, slurm, kubernetes, mindcluster
    title: str
    text: str


def of(
    hosts: Sequence[str], devices: Mapping[str, Sequence[int]], slots: Mapping[str, int], now: float
) -> list[Advice]:
    """For these hosts, and for these devices of others; now: seconds since 1970.  slots: {host: its ranks}."""
    if not hosts and not devices:
        return []
    parts = [*hosts, *(f"{host}:{','.join(map(str, numbers))}" for host, numbers in devices.items())]
    # In a list with devices a comma would be read as another device: @ is what --exclude takes between hosts.
    found = [Advice("exclude", tr("for the launch"), f"--exclude {quote(('@' if devices else ',').join(parts))}")]
    if hosts:
        found.append(_drain(hosts))
        found.append(Advice("kubernetes", tr("for Kubernetes"), f"kubectl cordon {' '.join(map(quote, hosts))}"))
    both = {**dict.fromkeys(hosts, ()), **devices}
    text = config_map({host: numbers or range(slots.get(host, 8)) for host, numbers in both.items()}, now)
    found.append(Advice("mindcluster", tr("for MindCluster, for kubectl apply -f -"), text))
    return found


def for_slurm(hosts: Sequence[str]) -> list[Advice]:
    """For these nodes of an allocation: nobody but Slurm starts jobs there."""
    if not hosts:
        return []
    launch = Advice("exclude", tr("for the launch"), f"--exclude {quote(','.join(hosts))}")
    batch = Advice("sbatch", tr("for sbatch and salloc"), f"--exclude={quote(_folded(hosts))}")
    return [launch, batch, _drain(hosts)]


def _drain(hosts: Sequence[str]) -> Advice:
    command = f"scontrol update nodename={quote(_folded(hosts))} state=drain reason={quote(_REASON)}"
    return Advice("slurm", tr("for Slurm"), command)


def _folded(hosts: Sequence[str]) -> str:
    """As Slurm writes sets of nodes."""
    return node_sets.folded(hosts, len(hosts)).replace(", ", ",")


def config_map(devices: Mapping[str, Sequence[int]], now: float) -> str:
    """The ConfigMap by which ClusterD takes faults of others; JSON within YAML, both escaped as JSON."""
    moment = int(now * 1000)
    fault = {
        "faultId": f"preflight-{moment}-fault",
        "faultType": "Node",
        "faultCode": _CODE,
        "faultTime": moment,
        "assertion": "occur",
        "influence": [
            {"nodeName": host.lower(), "deviceIds": [number for number in numbers if number < _MOST_DEVICES]}
            for host, numbers in list(devices.items())[:_MOST_HOSTS]
        ],
        "description": _REASON,
    }
    message = {
        "id": f"preflight-{moment}",
        "timestamp": moment,
        "version": "1.0",
        "resource": _SENDER,
        "faults": [fault],
    }
    return "\n".join(
        [
            "apiVersion: v1",
            "kind: ConfigMap",
            "metadata:",
            f"  name: preflight-{moment}",
            "  namespace: mindx-dl",
            "  labels:",
            '    mc-consumer-publicfault: "true"',
            "data:",
            "  PublicFault: |",
            f"    {json.dumps(message)}",
        ]
    )
