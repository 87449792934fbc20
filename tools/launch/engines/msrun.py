"""Places ranks that MindSpore's msrun starts on this host; every other host of the job runs the same command."""

from __future__ import annotations

from hccl_tools.common.language import tr
from hccl_tools.common.refusal import misused, refused
from hccl_tools.machine import host
from hccl_tools.table.address import is_loopback
from tools.launch.devices import seen
from tools.launch.engines import placement, ports
from tools.launch.engines.facts import Cluster, MsrunFacts
from tools.launch.hosts import network
from tools.launch.hosts.launchers import Meeting
from tools.launch.request import Request

DEFAULT_PORT = 8118  # msrun's own


def place(request: Request) -> placement.Placement:
    """--local_worker_num of the --worker_num ranks, on the host number --node_rank.  Raises Refusal."""
    world = request.worker_num or seen.usual(request, 8)
    here = request.local_worker_num or world
    hosts = count_hosts(world, here)
    node = request.node_rank or 0
    if hosts > 1 and request.node_rank is None:
        raise misused(
            "--node_rank is missing: {hosts} hosts have {here} of {world} ranks each; count from 0",
            hosts=hosts,
            here=here,
            world=world,
        )
    if node >= hosts:
        raise misused(
            "--node_rank {node}: {world} ranks with {here} per host use hosts 0 to {last}",
            node=node,
            world=world,
            here=here,
            last=hosts - 1,
        )
    address, is_here = master_address(request, hosts, node)
    devices = placement.named_devices(request, f"[0,{here})")
    if len(devices) != here:
        raise misused("{names}, this host has {ranks} ranks", names=placement.names(request, devices), ranks=here)
    port = request.master_port or (DEFAULT_PORT if hosts > 1 else 0)
    if is_here and port and not request.dry_run:  # MindSpore's own words about a taken port blame other things
        ports.check("--master_port", port, address, hosts)
    ranks = [(node * here + index, device) for index, device in enumerate(devices)]
    meeting = None
    if hosts > 1:
        meeting = Meeting(
            hosts=[f"--node_rank={number}" for number in range(hosts)],
            number=node,
            address=address,
            scheduler_port=port,
            job=f"{world} {here} {address} {port}",
        )
    return placement.Placement(
        ranks=ranks,
        world=world,
        engine=MsrunFacts(
            devices=list(devices), named=request.devices is not None, world=world, node=node, has_scheduler=is_here
        ),
        cluster=Cluster(scheduler_host=address, scheduler_port=port),
        job=[here] * hosts,
        meeting=meeting,
    )


def count_hosts(world: int, here: int) -> int:
    """The number of hosts that `world` ranks are on, `here` of them on each.  Raises Refusal."""
    if here > world:
        raise misused(
            "--local_worker_num {here}: the job has --worker_num {world} ranks in all", here=here, world=world
        )
    if world % here:
        raise misused(
            "--worker_num {world} is not a multiple of --local_worker_num {here}: msrun needs the same number of "
            "ranks on each host",
            world=world,
            here=here,
        )
    return world // here


def master_address(request: Request, hosts: int, node: int) -> tuple[str, bool]:
    """(the address of the host number 0, whether that is this host).  Raises Refusal."""
    address = network.address_of(request.master_addr or host.LOOPBACK, f"--master_addr {request.master_addr}")
    if hosts > 1 and is_loopback(address):
        raise misused(
            "--master_addr {address} can be reached only from this host; give the address of the host with "
            "--node_rank 0",
            address=address,
        )
    is_here = not network.others([address])
    if is_here != (node == 0):
        if is_here:
            text = tr(
                "--master_addr {address} is an address of this host, which has --node_rank {node}",
                address=address,
                node=node,
            )
        else:
            text = tr(
                "--master_addr {address} is not an address of this host, which has --node_rank {node}",
                address=address,
                node=node,
            )
        raise refused("{text}; give the address of the host with --node_rank 0", text=text)
    return address, is_here
