"""Options of mpirun, and the meaning of each for a launch; mpirun_words.py parses them."""

from __future__ import annotations

from hccl_tools.common.language import marked
from hccl_tools.common.record import Row


class Meaning(Row):
    """What an option of mpirun means here.

    kind:
      same      the same as our option `text`
      alias     the same as mpirun's option `text`
      anyway    the launch does so anyway, or needs it for nothing
      needless  it is not needed, because of `text`, which the user may want to know
      passed    passed to mpirun
      depends   it depends on the value: the name of a function of mpirun_words
      refused   refused, because of `text`
    """

    values: int  # how many it takes
    kind: str
    text: str = ""


_LOG = marked("each rank has a log of its own; --console all shows the numbers of the ranks")
_OUTPUT = marked("every rank writes a log of its own; write --output_filename DIR, or --console all")
_FOLDER = marked("ranks run in the folder where you type the command; change to another one by cd")
_SAME_PATH = marked("the program must be at the same path on all hosts")
_SAME_PATHS = marked("the files must be at the same paths on all hosts")
_ORDER = marked(
    "the launch fills one host after the other, in the order of the devices; write how many ranks a host "
    "gets: HOST:8, or slots=8"
)
_SIGNALS = marked("the launcher needs the signals that mpirun forwards by itself")
_GO_ON = marked("write --keep_going: the other ranks go on when one fails; or --max_restarts N")
_TERMINAL = marked("ranks have no terminal; their output is in rank_N.log")
_DEBUGGER = marked("ranks have no terminal; start one of them in a debugger with what --dry_run prints")
_LOST_HOST = marked("mpirun would not learn of a lost host; the launch connects it to each of them")
_CONCURRENT = marked("mpirun would hang if it were less than the number of hosts; the launch sets it")
_OWN_MPIRUN = marked("the launch starts an mpirun of its own")

# Names, number of values, kind, text.
_OPTIONS = (
    ("np c", 1, "same", "n"),
    ("N npernode ppn perhost nperhost ntasks_per_node", 1, "same", "npernode"),
    ("H host hosts hostfile machinefile default_hostfile", 1, "depends", "hosts"),
    ("x", 1, "depends", "variable"),
    ("mca gmca omca prtemca gprtemca pmixmca gpmixmca", 2, "depends", "parameter"),
    ("bind_to prefix", 1, "depends", "once"),
    ("map_by rank_by", 1, "depends", "order"),
    ("wdir wd", 1, "depends", "folder"),
    ("stdin", 1, "depends", "stdin"),
    ("output_filename", 1, "same", "output_filename"),
    ("timeout", 1, "same", "timeout"),
    ("q", 0, "same", "quiet"),
    ("allow_run_as_root merge_stderr_to_stdout oversubscribe nooversubscribe byslot", 0, "anyway", ""),
    ("bind_to_none disable_recovery", 0, "anyway", ""),
    ("tag_output timestamp_output", 0, "needless", _LOG),
    ("report_bindings display_map display_allocation display_devel_map display_topo", 0, "passed", ""),
    ("v verbose d debug_devel debug_daemons leave_session_attached use_hwthread_cpus noprefix", 0, "passed", ""),
    ("display cpus_per_proc cpus_per_rank cpu_set cpu_list am tune", 1, "passed", ""),
    ("output", 1, "refused", _OUTPUT),
    ("set_cwd_to_session_dir", 0, "refused", _FOLDER),
    ("preload_binary s", 0, "refused", _SAME_PATH),
    ("preload_files", 1, "refused", _SAME_PATHS),
    ("rankfile rf", 1, "refused", _ORDER),
    ("bynode", 0, "refused", _ORDER),
    ("forward_signals", 1, "refused", _SIGNALS),
    ("enable_recovery continuous", 0, "refused", _GO_ON),
    ("xterm", 1, "refused", _TERMINAL),
    ("debug tv", 0, "refused", _DEBUGGER),
    ("app", 1, "refused", marked("all ranks run one program")),
    ("dvm hnp", 1, "refused", _OWN_MPIRUN),
)
# The same for parameters, those of -mca, which have one value; all others are passed to mpirun.
_PARAMETERS = (
    ("orte_abort_on_non_zero_status state_base_error_non_zero_exit", 1, "depends", "failure"),
    ("orte_allow_run_as_root", 1, "anyway", ""),
    ("plm_rsh_agent plm_ssh_agent orte_rsh_agent", 1, "same", "ssh"),
    ("orte_output_filename", 1, "same", "output_filename"),
    ("plm_rsh_args plm_ssh_args", 1, "refused", marked('write the whole command: --ssh "ssh -p 2222"')),
    ("mca_base_env_list", 1, "refused", marked("write -x NAME=VALUE, once for each variable")),
    ("hwloc_base_binding_policy hwloc_default_binding_policy", 1, "alias", "bind_to"),
    ("rmaps_base_mapping_policy rmaps_default_mapping_policy", 1, "alias", "map_by"),
    ("rmaps_base_ranking_policy rmaps_default_ranking_policy", 1, "alias", "rank_by"),
    ("orte_default_hostfile", 1, "refused", marked("write --hostfile FILE")),
    ("routed routed_radix rml_base_radix", 1, "refused", _LOST_HOST),
    ("plm_rsh_num_concurrent plm_ssh_num_concurrent", 1, "refused", _CONCURRENT),
    ("ess_base_forward_signals orte_forward_signals prte_forward_signals", 1, "refused", _SIGNALS),
    ("orte_enable_recovery", 1, "refused", _GO_ON),
    ("orte_max_restarts", 1, "refused", marked("write --max_restarts N")),
    ("orte_xterm", 1, "refused", _TERMINAL),
)


def _by_name(rows: tuple[tuple[str, int, str, str], ...]) -> dict[str, Meaning]:
    return {name: Meaning(number, kind, text) for names, number, kind, text in rows for name in names.split()}


OPTIONS = _by_name(_OPTIONS)
PARAMETERS = _by_name(_PARAMETERS)
