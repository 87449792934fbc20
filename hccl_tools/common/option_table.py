"""Defines every option of the Python commands; command_line.Parser takes them from here.

The scripts that launch have their own table, tools/command/table.py.  An option in both tables has the same meaning.
"""

from __future__ import annotations

from hccl_tools.common import language
from hccl_tools.common.language import marked
from hccl_tools.common.record import Row


class Option(Row):
    """An option of a Python command."""

    takes: str  # its value; "-": none; "a|b": one of these
    meaning: str  # in English; a command may add a note to it
    shown: str = ""  # how it is typed, where that is not only --name
    old: str = ""  # names of earlier versions and of other commands, which are accepted and are not in --help


TABLE = {
    "lang": Option("|".join(language.NAMES), language.MEANING),
    "version": Option("-", marked("print the version of this project")),
    # rank tables
    "devices": Option(
        "RANGE", marked('the physical ids of the devices, such as "[4,8)" or "0,1,4,5"'), old="--device_num"
    ),
    "visible_devices": Option(
        "LIST", marked("physical devices that this container sees, in order; RANGE then counts positions in this list")
    ),
    "server_ip": Option("IP", marked("this host's address in the new table")),
    "server_id": Option("ID", marked("this host's server_id in the table (default: by its address)")),
    "hccn_conf": Option(
        "FILE", marked("addresses of the devices where hccn_tool gives none (default: /etc/hccn.conf)")
    ),
    "root_info": Option(
        "FILE",
        marked("the description of a 950 host, from which its table is built (default: /etc/hccl_rootinfo.json)"),
    ),
    "generation": Option(
        "910A|A2|A3|950|any", marked("the chip generation whose rules apply to devices and rank tables")
    ),
    "against_host": Option(
        "-", marked("compare with this host: its addresses, those of its devices, RANK_ID, RANK_SIZE, DEVICE_ID")
    ),
    "to": Option("1.0|1.1|1.2|2.0|lab|cloud|hosts", marked("the format of the result")),
    "facts": Option(
        "FILE",
        marked("a rank table or a list of hosts of the same job, to supply what is missing; repeatable"),
    ),
    "job": Option("NAME", marked("the job's name: collective_id of 1.1, group_name and pods of cloud")),
    "layer": Option("N", marked("device_ip is the address on this net_layer of a version 2.0 table")),
    "all": Option("-", marked("list every difference, and not only the first 10 of a kind")),
    "force": Option("-", marked("replace the file of --output")),
    "explain": Option("CODE", marked("explain what a code means, and check nothing")),
    # hosts
    "hostfile": Option("FILE", marked("the hosts, in Open MPI's syntax, one per line")),
    "hosts": Option(
        "HOSTS", marked("the hosts, each with the number of its ranks, such as node1:8,node2:8"), shown="-H --hosts"
    ),
    "ssh": Option(
        "COMMAND",
        marked(
            'the command that reaches other hosts, such as "ssh -F FILE" (default: OMPI_MCA_plm_rsh_agent, else ssh)'
        ),
    ),
    "ping": Option("-", marked("also ping, from each device, the device at the same place on every other server")),
    # what comes out
    "output": Option("FILE", marked("the file to write"), old="--out"),
    "stdout": Option("-", marked("print the table and write no file")),
    "json": Option("-", marked("print the result as JSON, for a program")),
    "svg": Option("-", marked("print a drawing, an SVG document")),
    # runs
    "log_dir": Option(
        "DIR",
        marked("folder for the logs of all runs; each run makes its own folder in it (default: logs)"),
        old="--logs",
    ),
    "failed": Option("-", marked("only runs that failed")),
    "keep": Option("N", marked("clean: how many of the newest runs to keep")),
    "yes": Option("-", marked("clean: remove without asking")),
    "once": Option("-", marked("print the current state and exit")),
    "every": Option(
        "SECONDS", marked("print a line at this interval, also on a terminal, such as 90s or 1m (default: 10)")
    ),
    "events": Option(
        "FILE", marked("write one JSON line for each fatal event: time, rank, host, device, code, cause; -: to stdout")
    ),
    "bundle": Option(
        "FILE.tar.gz",
        marked("pack the logs into this new file, to send to someone who can help; cut to size and without secrets"),
    ),
    "bundle_limit": Option("MIB", marked("limit for the size of the bundle before compression, in MiB (default: 256)")),
    "oom_kills": Option(
        "N",
        marked(
            "processes that the kernel killed for memory on this machine while the job ran (oom_kill in /proc/vmstat)"
        ),
    ),
    # training and checkpoints
    "train_script": Option("FILE", marked("the Python file that trains")),
    "data": Option("PATH", marked("the file or the folder of the data, which every host needs")),
    "trial": Option(
        "-",
        marked(
            "also start a short job on all hosts: AllReduce, matmul, reading of the data; find the hosts that fail or"
            " are slow"
        ),
    ),
    "pod_wait": Option(
        "SECONDS",
        marked("how long to wait for the rank table and for the other pods"),
    ),
    "config": Option("FILE", marked("the training config"), shown="--config -c"),
    "ckpt": Option(
        "PATH",
        marked(
            "the checkpoint: a file with the whole network, or a job's checkpoint folder (rank_0, rank_1 ...), "
            "whose newest checkpoint is merged"
        ),
    ),
    "opt": Option("KEY=VALUE", marked("set values of the config"), shown="-o --opt"),
    "ranks": Option("N", marked("ranks of the job"), old="-n --nproc"),
    "src_strategy": Option("FILE", marked("strategy file of the job that saved the checkpoint")),
    "dst_strategy": Option("FILE", marked("strategy file of the new job")),
    "batch_size": Option("N", marked("samples per batch (default: 1)")),
    # data sets
    "images": Option("N", marked("images in each of the six files (10000); fewer are for tools/train.py only")),
    "words": Option("N", marked("training images of single words (2000)")),
    "scenes": Option("N", marked("training images of scenes with words (300)")),
    "font": Option("FILE", marked("a TrueType or OpenType font, for characters Pillow's lacks")),
    "characters": Option("TEXT", marked("what words are made of (0-9, a-z)")),
}


RUN = marked("the folder of a run (default: logs/latest)")  # the argument RUN


def bare(word: str) -> str:
    """The name in a word such as --log-dir=logs: hyphens and underscores are the same."""
    return word.partition("=")[0].lstrip("-").replace("-", "_")
