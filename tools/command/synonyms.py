"""Options of torchrun and msrun that our scripts do not have: which of ours means the same, or why none is needed."""

from __future__ import annotations

from hccl_tools.common.language import marked, tr
from hccl_tools.common.quoting import quote
from tools.command import table
from tools.command.line import is_number
from tools.command.options import take_option, value_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.command.line import Line

_RENDEZVOUS = marked("MindSpore has a scheduler of its own")
# {name: what it takes, as in table.Option, then what it means here, with its text}
#   same      the same as the first of our options that the script has
#   here      this value is that of a job on one host
#   needless  it is not needed, because of this
#   variable  the value of this variable of MindSpore
_SYNONYMS = {
    "nproc": ("N", "same", "n local_worker_num ntasks_per_node"),
    "nproc_per_node": ("N", "same", "npernode n local_worker_num ntasks_per_node"),
    "worker_num": ("N", "same", "n"),
    "local_worker_num": ("N", "same", "n"),
    "nnodes": ("N", "here", "1"),
    "node_rank": ("N", "here", "0"),
    "rank_table_file": ("FILE", "same", "rank_table"),
    "master_addr": ("HOST", "needless", marked("ranks of one host need no address")),
    "master_port": ("PORT", "needless", marked("the launch takes a free port")),
    "join": ("[True|False]", "needless", marked("the launch always waits for its ranks")),
    "standalone": ("-", "needless", marked("the launch needs no rendezvous server")),
    "rdzv_backend": ("NAME", "needless", _RENDEZVOUS),
    "rdzv_endpoint": ("HOST", "needless", _RENDEZVOUS),
    "rdzv_id": ("NAME", "needless", _RENDEZVOUS),
    "rdzv_conf": ("WORDS", "needless", _RENDEZVOUS),
    "cluster_time_out": ("SECONDS", "variable", "MS_TOPO_TIMEOUT"),
}


def take(line: Line, words: Sequence[str]) -> int:
    """Takes one of them and its value from the front; the number of words, 0 if the first word is none."""
    name = table.bare(words[0])
    if not words[0].startswith("--") or name not in _SYNONYMS:
        return 0
    takes, kind, text = _SYNONYMS[name]
    value, taken = value_of(line, takes, words)
    typed = f"--{name} {quote(value)}"
    if kind == "same":
        _same(line, typed, value, text.split())
    elif kind == "here":
        if value != text:
            raise line.mistake(
                tr(
                    "{typed}: this host alone is {option} {value}; {hosts}",
                    typed=typed,
                    option=f"--{name}",
                    value=text,
                    hosts=_hosts(),
                )
            )
    elif kind == "variable":
        if not is_number(value):
            raise line.mistake(tr("{typed} is not a whole number of at most 8 digits", typed=typed))
        line.environment[text] = value
    else:
        line.note_needless(f"--{name}", tr(text))
    return taken


def _same(line: Line, typed: str, value: str, names: list[str]) -> None:
    """Takes the value for the first of these options that the script has."""
    own = next((name for name in names if name in line.table), "")
    if not own:
        raise line.mistake(
            tr(
                "{typed}: {script} has no such option; any number of ranks: scripts/launch.sh -n",
                typed=typed,
                script=line.declaration.name,
            )
        )
    other = line.value(own, value)
    if other != value:
        raise line.mistake(
            tr("{typed}: another option says {value}; {hosts}", typed=typed, value=other, hosts=_hosts())
        )
    take_option(line, [f"--{own}={value}"])


def _hosts() -> str:
    return tr("several hosts: scripts/run_msrun.sh on each of them, or scripts/run_cluster.sh --hostfile FILE once")
