"""Options of torchrun, accelerate and msrun that our scripts lack: our equivalent of each, or the reason why none."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.common.language import marked, tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.refusal import Refusal
from hccl_tools.table import device_range
from tools.command import per_device
from tools.command.line import Line, is_number
from tools.command.options import take_option, value_of

_RENDEZVOUS = marked("MindSpore has a scheduler of its own")
_ALL = "n worker_num"  # our options for the number of all ranks
_EACH = "npernode local_worker_num n ntasks_per_node"  # for the ranks of one host
# {name: what it takes, as in table.Option, then what it means here, with its text}
#   same      the same as the first of our options that the script has
#   alias     the same as this one of them
#   hosts     the number of hosts: see `finish`
#   here      this value is that of a job on one host
#   needless  it is not needed, because of this
#   variable  the value of this variable of MindSpore
#   console   the ranks whose output is shown
_SYNONYMS = {
    "n": ("N", "same", _ALL),
    "np": ("N", "same", _ALL),
    "nproc": ("N", "same", f"{_ALL} {_EACH}"),
    "worker_num": ("N", "same", _ALL),
    "num_processes": ("N", "same", _ALL),
    "num_machines": ("N", "alias", "nnodes"),
    "machine_rank": ("N", "alias", "node_rank"),
    "main_process_ip": ("HOST", "alias", "master_addr"),
    "main_process_port": ("PORT", "alias", "master_port"),
    "nproc_per_node": ("N", "same", _EACH),
    "npernode": ("N", "same", _EACH),
    "ppn": ("N", "same", _EACH),
    "ntasks_per_node": ("N", "same", _EACH),
    "local_worker_num": ("N", "same", _EACH),
    "num_gpus": ("N", "same", _EACH),
    "num_npus": ("N", "same", _EACH),
    "nnodes": ("N", "hosts", ""),
    "num_nodes": ("N", "hosts", ""),
    "node_rank": ("N", "here", "0"),
    "rank_table_file": ("FILE", "table", "rank_table"),
    "master_addr": ("HOST", "needless", marked("ranks of one host need no address")),
    "master_port": ("PORT", "needless", marked("the launch takes a free port")),
    "join": ("[True|False]", "needless", marked("the launch always waits for its ranks")),
    "standalone": ("-", "needless", marked("the launch needs no rendezvous server")),
    "rdzv_backend": ("NAME", "needless", _RENDEZVOUS),
    "rdzv_endpoint": ("HOST", "needless", _RENDEZVOUS),
    "rdzv_id": ("NAME", "needless", _RENDEZVOUS),
    "rdzv_conf": ("WORDS", "needless", _RENDEZVOUS),
    "worker_log_name": ("NAME", "needless", marked("the log of each rank is rank_N.log in the run's folder")),
    "cluster_time_out": ("SECONDS", "variable", "MS_TOPO_TIMEOUT"),
    "tail_worker_log": ("RANKS", "console", ""),
}
_SHORT = ("n", "np", "npernode", "ppn")  # those that people type with one dash


def take(line: Line, words: Sequence[str]) -> int:
    """Takes one option and its value from the front; returns the number of words, 0 if the first is another word."""
    option, equals, rest = words[0].partition("=")
    name = option.lstrip("-").replace("-", "_")
    if name not in _SYNONYMS or not (option.startswith("--") or name in _SHORT):
        return 0
    takes, kind, text = _SYNONYMS[name]
    value, taken = value_of(line, takes, [f"--{name}{equals}{rest}", *words[1:]])
    typed = f"{option} {quote(value)}"
    if kind == "same":
        _same(line, typed, value, text.split())
        line.per_host = line.per_host or text == _EACH
    elif kind == "hosts" and "worker_num" in line.table:
        line.hosts = value
    elif kind in ("here", "hosts"):
        _here(line, typed, option, value, text or "1")
    elif kind == "variable":
        line.environment[text] = value
    elif kind == "console":
        take_option(line, [f"--console={'all' if value == '-1' else value}"])
    elif kind == "table":
        _table(line, typed, option, value, text)
    elif kind == "alias":
        take_option(line, [f"--{text}={value}"])
    else:
        line.note_needless(f"--{name}", tr(text))
    return taken


def finish(line: Line) -> None:
    """For msrun and pods, when all words are read: computes the job's ranks from those of a host and the hosts.

    msrun itself has no number of hosts, and torchrun none of all ranks.
    """
    world, each, hosts = line.value("worker_num"), line.value("local_worker_num"), line.hosts
    if not hosts:
        if line.per_host and each and not world and line.declaration.engine == "msrun":
            line.options.append(("worker_num", each))
        return
    if not is_number(hosts) or int(hosts) < 1:
        raise line.misused("--nnodes {hosts}: write how many hosts there are, such as 2", hosts=quote(hosts))
    if not all(map(is_number, filter(None, (world, each)))):
        return  # the request states this
    if not world and not each:
        raise line.misused(
            "--nnodes {hosts}: how many ranks does each host have? Add the number, such as: --nproc_per_node 8",
            hosts=hosts,
        )
    world, each = world or str(int(each) * int(hosts)), each or str(int(world) // int(hosts))
    if int(each) * int(hosts) != int(world):
        raise line.misused(
            "--nnodes {hosts}: {world} ranks cannot be divided equally among the hosts; write another "
            "--worker_num or --nproc_per_node",
            hosts=hosts,
            world=world,
        )
    line.options += [("worker_num", world), ("local_worker_num", each)]


def _here(line: Line, typed: str, option: str, value: str, only: str) -> None:
    """Takes what every job on one host has."""
    if value != only:
        raise line.misused(
            "{typed}: for this host alone, the value is {option} {value}; {hosts}",
            typed=typed,
            option=option,
            value=only,
            hosts=_hosts(),
        )


def _table(line: Line, typed: str, option: str, value: str, own: str) -> None:
    """Takes a rank table; ranks that find each other without one do not need it."""
    if own in line.table:
        take_option(line, [f"--{own}={value}"])
    elif "RANK_TABLE_FILE" in line.names:
        raise line.misused("{typed}: the rank table is the argument RANK_TABLE_FILE", typed=typed)
    else:
        line.note_needless(option, tr("the ranks find each other without a rank table"))


def _same(line: Line, typed: str, value: str, names: list[str]) -> None:
    """Takes the value for the first of these options that the script has."""
    own = next((name for name in names if name in line.table), "")
    if value.lower() in per_device.TARGETS and own in per_device.OPTIONS:
        line.per_device = (typed, own, value.lower())
        return
    if not is_number(value):
        raise _no_number(line, typed)
    if not own:
        devices = line.declaration.extra.get("devices")
        if devices and value == str(len(device_range.parse(devices))):
            return  # so many ranks start anyway
        raise line.mistake(f"{typed}: {_instead(line)}")
    other = line.value(own, value)
    if other != value:
        raise line.misused("{typed}: another option says {value}; {hosts}", typed=typed, value=other, hosts=_hosts())
    take_option(line, [f"--{own}={value}"])


def _no_number(line: Line, typed: str) -> Refusal:
    return line.misused("{typed} is not a whole number of at most 8 digits", typed=typed)


def _instead(line: Line) -> str:
    """How the script, which has no option for the number of ranks, gets it."""
    if "ntasks_per_node" in line.table:
        return tr("Slurm's allocation sets the number of nodes; set the ranks of each node with --ntasks_per_node N")
    if "RANK_SIZE" in line.names:
        return tr("the number of ranks is the argument RANK_SIZE")
    return tr("{script} has no such option; any number of ranks: scripts/launch.sh -n N", script=line.declaration.name)


def _hosts() -> str:
    return tr("several hosts: scripts/run_msrun.sh on each of them, or scripts/run_cluster.sh --hostfile FILE once")
