"""Every option of every script.  They are declared here and nowhere else: --help and docs/options.md print it."""

from __future__ import annotations

from hccl_tools.common import language, option_table
from hccl_tools.common.language import marked
from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection


class Option(Row):
    """An option of a script."""

    # Its value; "-": none; "[True|False]": a flag that one of these may follow; "[RUN]": see program.is_run;
    # "[MODULES]": only behind =
    takes: str
    meaning: str  # in English


# {name and value: meaning} of options that a script must name to have them.
NAMED = {
    "config FILE": marked(
        "the training config, whatever its name (default: the argument CONFIG, else the script's own)"
    ),
    "n N": marked(
        "number of ranks, also --nproc (default: launch.sh: the visible devices of this machine; else one for each"
        " slot of the hosts, without hosts 8, or as many as devices are visible)"
    ),
    "npernode N": marked("ranks of each host, also -N, -ppn and --map-by ppr:N:node (default: the slots of the host)"),
    "zoo -": marked(
        "PROGRAM is a start script that itself starts the ranks, in a loop, by mpirun or by msrun, such as"
        " run_distribute_train.sh: it runs once, and what it starts there is launched"
    ),
    "engine NAME": marked(
        "what starts the ranks: local, mpirun, srun, msrun or pod (default: what fits the place and the options)"
    ),
    "no_sink -": marked(
        "run operator by operator instead of sinking the graph (jit_level O0, GRAPH_OP_RUN=1, HCCL_WHITELIST_DISABLE=1)"
    ),
    "output_filename DIR": marked("also link the ranks' logs there in Open MPI's layout, DIR/1/rank.N/stdout"),
    "ssh COMMAND": option_table.TABLE["ssh"].meaning,
    "hostfile FILE": marked(
        "the hosts, in Open MPI's syntax, one a line with slots=N; this command starts the ranks of all of them"
    ),
    "network NAME": marked(
        "the network between hosts that have several: an interface such as eth0, or a range such as 10.0.0.0/24"
    ),
    "worker_num N": marked(
        "ranks of the whole job (default: 8, or as many as devices are visible; run_pod.sh: as the environment says)"
    ),
    "local_worker_num N": marked("ranks of this host (default: all of them; run_pod.sh: as the environment says)"),
    "master_addr HOST": marked(
        "the host of --node_rank 0, where MindSpore's scheduler runs (default: 127.0.0.1; run_pod.sh: as the"
        " environment says)"
    ),
    "master_port PORT": marked("the scheduler's port (default: a free one; with several hosts 8118)"),
    "node_rank N": marked("the number of this host among the hosts, from 0"),
    "sim_level 0|1|2|3": marked(
        "compile for the ranks of a job that does not run, without devices and without a scheduler"
        " (MS_SIMULATION_LEVEL): how many ranks the job has is --worker_num, or -n of launch.sh"
    ),
    "sim_rank_id N": marked("the one rank that --sim_level compiles for, in one process (default: those of this host)"),
    "worker_log_name NAME": marked(
        "also link the log of each rank as NAME_N.log in the run's folder; {ip} and {hostname} in NAME are this host's"
    ),
    "table_dir DIR": marked(
        "a folder that all pods share, without an operator: each pod writes its devices there, pod 0 the rank table"
    ),
    "table_hosts HOSTS": marked(
        "the hosts of a rank table of version 2.0, which does not name them, in the order of the ranks, such as"
        " node1:8,node2:8, or a hostfile with slots=N"
    ),
    "pod_wait SECONDS": marked(
        "how long to wait for the rank table and for the other pods; exit code 124 after it (default: 1800)"
    ),
    "ntasks_per_node N": marked("ranks of each node (default: as in the allocation)"),
    "spare N": marked(
        "the last N hosts stand by: one of them takes the place of a host that is lost; needs --max_restarts. In a"
        " hostfile, the word spare after a host does the same"
    ),
    "min_ranks N": marked(
        "when a host is lost, start again only with at least N ranks, else end the job; needs --max_restarts"
        " (default: 1)"
    ),
    "preflight -": marked(
        "first ask all hosts, compare them, and do not start where something would stop the job: the quick part of"
        " preflight.sh"
    ),
    "json -": option_table.TABLE["json"].meaning,
}
# The same for options of every script that launches.
SHARED = {
    "device_target Ascend|GPU|CPU": marked(
        "the hardware that the ranks run on (default: the script's; GPU: run_gpu.sh, run_mpirun*.sh, run_msrun.sh,"
        " run_slurm.sh); CPU: real MindSpore ranks on this machine, to try a launch without NPUs"
    ),
    "devices RANGE": marked(
        'the devices by their physical ids, such as "[4,8)" or "0,1,4,5" (default: the script\'s own, else those that'
        " are visible)"
    ),
    "exclude LIST": marked(
        "leave out devices of this host, such as 3 or 3,5-7, hosts, such as node2, or devices of hosts, such as"
        " node2:3,5; also node1:0,2@node3, as DeepSpeed has it"
    ),
    "rank_table FILE": marked(
        "the rank table (default: RANK_TABLE_FILE if it is set, else one in the current folder or beside the"
        " program that fits, else a new one)"
    ),
    "hccn_conf FILE": option_table.TABLE["hccn_conf"].meaning,
    "generation 910A|A2|A3|950|any": marked(
        "the chip generation whose rules hold for devices and rank tables (default: that of this host's NPUs if it"
        " has some, else any: only the rules of all generations)"
    ),
    "train_script FILE": marked(
        "the Python file that trains; with a config it gets --config CONFIG, else only the words after --"
        " (default: tools/train.py of the current folder, else of this project)"
    ),
    "pytest FILE": marked(
        "run this file of tests, or one of its tests as FILE::TEST, in every rank with: python -m pytest -s"
    ),
    "per_rank_words -": marked(
        "replace {rank}, {local_rank}, {device}, {world_size} and {run}, the run's folder, in the program's words by"
        " those of each rank, such as in --device_id={device}"
    ),
    "rank_folder -": marked(
        "run each rank in a folder of its own, folders/rank_N in the run's folder, with copies of the program's files"
    ),
    "rank_files NAMES": marked(
        'the same; what is copied: names and patterns with commas between them, such as "../*.py,../src" (default:'
        " *.py, *.sh, *.yaml, *.yml, *.json, src, config and configs of the current folder)"
    ),
    "import_once [MODULES]": marked(
        "on CPU: one process imports what the program imports of MindSpore and NumPy, and the ranks are its forks,"
        " which start sooner; --import_once=NAME,NAME: import these modules instead; --import_once=force: also on NPUs"
        " and GPUs, where nobody has tried it"
    ),
    "log_dir DIR": option_table.TABLE["log_dir"].meaning,
    "console 0|all|table|none": marked(
        "the output to show while the job runs: that of rank 0, or of others such as 3, 0,3 or 0-3, that of all ranks"
        " with their numbers, a live table of the ranks, or none (default: 0)"
    ),
    "keep_plogs failed|all|none": marked(
        "which of CANN's own logs, the plogs, stay after the run on NPUs: those of an attempt that failed, cut to"
        " 64 MiB a rank, all, or none (default: failed)"
    ),
    "watch_plogs -": marked(
        "on NPUs: print a line when a known fault comes into the plog of a rank while the job runs, such as an"
        " RDMA packet without an answer, and again when it has come 10, 100, 1000 times"
    ),
    "no_watch -": marked(
        "do not look whether the ranks train one thing together; else ranks that never joined the job, that all have"
        " the same data, or whose loss leaves the others' are named while the job runs, in the report and on the page"
    ),
    "report -": marked(
        "when the job has ended, write a page about it, report.html in the run's folder: curves, a time line, what"
        " went wrong; after a failure it is also written without this option, if that takes less than a second"
    ),
    "straggler FACTOR": marked(
        "name a rank, once while the job runs and again in the report, whose step has taken FACTOR times the"
        " median, such as 1.5, for 20 steps (default: off)"
    ),
    "metrics FILE": marked(
        "while the job runs write its state to FILE in Prometheus' text format, for node_exporter's textfile"
        " collector; FILE ending with .jsonl: add lines of JSON; :PORT or ADDRESS:PORT in place of FILE: answer there"
        " over HTTP, /metrics and /healthz (default: off)"
    ),
    "stall_timeout SECONDS": marked(
        "/healthz of --metrics :PORT answers with 503 when no rank has written to its log for this long; before the"
        " first step, and while lines come but no step, three times as long (default: 10m)"
    ),
    "quiet -": marked("show only what went wrong"),
    "timeout SECONDS": marked("end the job after this time, with exit code 124 (default: no limit)"),
    "stop_before SECONDS": marked(
        "ask the ranks to save and to end this long before --timeout, or before the time limit of the Slurm job; exit"
        " code 124"
    ),
    "hang_timeout SECONDS": marked(
        "end the job, with exit code 124, when no rank has written to its log for this long; save the stacks of"
        " all ranks first (default: no limit)"
    ),
    "max_restarts N": marked(
        "when a rank fails, start all of them again, with RESUME=1 in their environment; at most N times in a row"
        " without a new step or checkpoint (default: 0)"
    ),
    "restart_limit N": marked(
        "with --max_restarts: at most N restarts in all, however far they bring the job (default: 100, or"
        " --max_restarts if that is more)"
    ),
    "restart_wait SECONDS": marked(
        "before a restart, wait at most this long until no process of the last attempt is left and its devices and"
        " ports are free, else end the job; 0: do not look (default: 120)"
    ),
    "keep_going -": marked(
        "when a rank fails, let the others go on; the exit code is that of the rank that failed first"
    ),
    "leftovers wait|end": marked(
        "what becomes of processes that a rank has left when it ends with 0, such as those that a shell script has"
        " started with &: the job waits until they have ended, and fails if they do; or they are ended"
        " (default: wait)"
    ),
    "restart_args WORDS": marked(
        "more words for the trainer from the second attempt on, in one text that is split as a shell splits words,"
        ' such as "-o model.resume=True"'
    ),
    "resume [RUN]": marked(
        "go on from the newest run of this config that has checkpoints, or from RUN: the folder of a run or of its"
        " checkpoints, such as logs/latest; the next word is RUN if it is such a folder; without doubt:"
        " --resume=RUN or --resume=newest"
    ),
    "wait_for_devices -": marked("if other jobs hold the devices, wait until they are free"),
    "grace SECONDS": marked(
        "time between SIGTERM and SIGKILL when ranks are stopped, or asked to save and to end (default: 10; run_pod.sh:"
        " 25; when Slurm ends the job: its KillWait)"
    ),
    "bind_core [True|False|MAP]": marked(
        "bind each rank to cores of its own, near its device; on CPU an even share of the cores. A MAP in JSON says"
        ' which, as for msrun: {"device0": ["0-3"], "device1": ["4-7"]}'
    ),
    "bind_numa [True|False|MAP|FILE]": marked(
        "bind each rank to all cores of the NUMA node of its device; ranks on one node share them. A MAP, or a FILE in"
        " JSON with bind_cpu and bind_memory, is as for msrun: memory is bound, too, by numactl"
    ),
    "no_check -": marked(
        "skip the checks that need the NPUs, and that of a program's parallel mode, but still check the rank table"
    ),
    "lang zh|en": language.MEANING,
    "no_defaults -": marked("leave out the options that the variable MSLAUNCH_OPTIONS has for every launch"),
    "dry_run -": marked("print the plan in a form that can be pasted into a shell; start and write nothing"),
    "version -": marked("print the version of this project"),
    "help -": marked("print this page"),
}


def of(names: Collection[str], without: Collection[str] | None) -> dict[str, Option]:
    """{name: option} of a script, in the table's order: those with these names, and the shared ones.

    without: shared options that it does not have; None: it launches nothing and has only the first ones.
    """
    found: dict[str, Option] = {}
    for table, shared in ((NAMED, False), (SHARED, without is not None)):
        for key, meaning in table.items():
            name, _, takes = key.partition(" ")
            if name in names or (shared and name not in (without or ())):
                found[name] = Option(takes, meaning)
    return found


def bare(word: str) -> str:
    """The name of the option in a word such as --max-restarts=3: hyphens and underscores are the same."""
    return word.partition("=")[0][len("--") :].replace("-", "_")


def typed(name: str) -> str:
    """How the option is typed: -n for a name of one letter."""
    return f"--{name}" if len(name) > 1 else f"-{name}"
