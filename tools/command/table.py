"""Defines every option of every script, in this file only; --help and docs/options.md print it."""

from __future__ import annotations

from collections.abc import Collection

from hccl_tools.common import language, option_table
from hccl_tools.common.language import marked
from hccl_tools.common.record import Row


class Option(Row):
    """An option of a script."""

    # Its value; "-": none; "[True|False]": a flag that one of these may follow; "[RUN]": see program.is_run;
    # "[MODULES]": only behind =
    takes: str
    meaning: str  # in English


# {name and value: meaning} of options that a script must name to have them.
NAMED = {
    "config FILE": marked(
        "the training config, with any file name (default: the argument CONFIG, or else the script's own)"
    ),
    "n N": marked(
        "number of ranks, also --nproc (default: in launch.sh, one per visible device of this machine; otherwise"
        " one per slot of the hosts; without hosts 8, or the number of visible devices)"
    ),
    "npernode N": marked(
        "number of ranks on each host, also -N, -ppn and --map-by ppr:N:node (default: the slots of the host)"
    ),
    "zoo -": marked(
        "PROGRAM is a start script that itself starts the ranks, in a loop or with mpirun or msrun, such as"
        " run_distribute_train.sh: it runs once, and the launcher starts its ranks"
    ),
    "engine NAME": marked(
        "what starts the ranks: local, mpirun, srun, msrun or pod (default: detected from the environment and the"
        " options)"
    ),
    "no_sink -": marked(
        "run operator by operator instead of sinking the graph (jit_level O0, GRAPH_OP_RUN=1, HCCL_WHITELIST_DISABLE=1)"
    ),
    "output_filename DIR": marked("also create links to the ranks' logs in Open MPI's layout, DIR/1/rank.N/stdout"),
    "ssh COMMAND": option_table.TABLE["ssh"].meaning,
    "hostfile FILE": marked(
        "the hosts, in Open MPI's syntax, one per line with slots=N; this command starts the ranks on all of them"
    ),
    "network NAME": marked(
        "the network to use if the hosts have several: an interface such as eth0, or a range such as 10.0.0.0/24"
    ),
    "worker_num N": marked(
        "number of ranks in the whole job (default: 8, or the number of visible devices; run_pod.sh: from the"
        " environment)"
    ),
    "local_worker_num N": marked(
        "number of ranks on this host (default: all of them; run_pod.sh: from the environment)"
    ),
    "master_addr HOST": marked(
        "the host of --node_rank 0, where MindSpore's scheduler runs (default: 127.0.0.1; run_pod.sh: from the"
        " environment)"
    ),
    "master_port PORT": marked("the scheduler's port (default: a free one; with several hosts 8118)"),
    "node_rank N": marked("the number of this host among the hosts, from 0"),
    "sim_level 0|1|2|3": marked(
        "compile for the ranks of a job without running it, without devices and without a scheduler"
        " (MS_SIMULATION_LEVEL); --worker_num, or -n of launch.sh, is the number of ranks in the job"
    ),
    "sim_rank_id N": marked(
        "the only rank for which --sim_level compiles, in one process (default: all ranks of this host)"
    ),
    "worker_log_name NAME": marked(
        "also link the log of each rank as NAME_N.log in the run's folder; {ip} and {hostname} in NAME are this host's"
    ),
    "table_dir DIR": marked(
        "a folder that all pods share, for a job without an operator: each pod writes its devices there, and pod 0"
        " the rank table"
    ),
    "table_hosts HOSTS": marked(
        "the hosts of a rank table of version 2.0, which does not name them, in the order of the ranks, such as"
        " node1:8,node2:8, or a hostfile with slots=N"
    ),
    "pod_wait SECONDS": marked(
        "how long to wait for the rank table and for the other pods; exit code 124 after it (default: 1800)"
    ),
    "ntasks_per_node N": marked("number of ranks on each node (default: as in the allocation)"),
    "spare N": marked(
        "the last N hosts are spares: one of them replaces a host that is lost; needs --max_restarts. In a"
        " hostfile, the word spare after a host does the same"
    ),
    "min_ranks N": marked(
        "after the loss of a host, restart only with at least N ranks, otherwise end the job; needs --max_restarts"
        " (default: 1)"
    ),
    "preflight -": marked(
        "first compare all hosts with the quick part of preflight.sh, and do not start if something would stop the job"
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
        'the physical ids of the devices, such as "[4,8)" or "0,1,4,5" (default: the script\'s own, or else the'
        " visible devices)"
    ),
    "exclude LIST": marked(
        "exclude devices of this host, such as 3 or 3,5-7, hosts, such as node2, or devices of hosts, such as"
        " node2:3,5; also node1:0,2@node3, as in DeepSpeed"
    ),
    "rank_table FILE": marked(
        "the rank table (default: RANK_TABLE_FILE if it is set, else a suitable table in the current folder or next"
        " to the program, else a new one)"
    ),
    "hccn_conf FILE": option_table.TABLE["hccn_conf"].meaning,
    "generation 910A|A2|A3|950|any": marked(
        "the chip generation whose rules apply to devices and rank tables (default: that of this host's NPUs;"
        " without NPUs any: only the rules common to all generations)"
    ),
    "train_script FILE": marked(
        "the Python file that trains; with a config it gets --config CONFIG, otherwise only the arguments after --"
        " (default: tools/train.py in the current folder, or else in this project)"
    ),
    "pytest FILE": marked(
        "run this test file, or one of its tests as FILE::TEST, in every rank with: python -m pytest -s"
    ),
    "per_rank_words -": marked(
        "replace {rank}, {local_rank}, {device}, {world_size} and {run}, the run's folder, in the program's"
        " arguments by each rank's own values, such as in --device_id={device}"
    ),
    "rank_folder -": marked(
        "run each rank in its own folder, folders/rank_N in the run's folder, with copies of the program's files"
    ),
    "rank_files NAMES": marked(
        'the same, with the files to copy: names and patterns separated by commas, such as "../*.py,../src"'
        " (default: *.py, *.sh, *.yaml, *.yml, *.json, src, config and configs in the current folder)"
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
        "which of CANN's own logs, the plogs, to keep after a run on NPUs: those of a failed attempt, cut to 64 MiB"
        " per rank, all, or none (default: failed)"
    ),
    "watch_plogs -": marked(
        "on NPUs: print a line when a known fault appears in the plog of a rank while the job runs, such as an RDMA"
        " packet without an answer, and again when it has appeared 10, 100 and 1000 times"
    ),
    "no_watch -": marked(
        "do not check whether the ranks train one model together; without this option, the launch names ranks "
        "that never joined the job, ranks that all have the same data, and ranks whose loss drifts away from the "
        "others: while the job runs, in the report and on the page"
    ),
    "report -": marked(
        "when the job has ended, write a page about it, report.html in the run's folder: curves, a time line, what"
        " went wrong; after a failure the page is written even without this option, if that takes less than a"
        " second"
    ),
    "straggler FACTOR": marked(
        "name a slow rank, once while the job runs and again in the report: one whose steps have taken FACTOR times"
        " the median, such as 1.5, for 20 steps (default: off)"
    ),
    "metrics FILE": marked(
        "while the job runs, write its state to FILE in Prometheus' text format, for node_exporter's textfile"
        " collector; if FILE ends with .jsonl, append lines of JSON; with :PORT or ADDRESS:PORT instead of FILE,"
        " serve /metrics and /healthz over HTTP (default: off)"
    ),
    "stall_timeout SECONDS": marked(
        "/healthz of --metrics :PORT answers with 503 when no rank has written to its log for this long; the limit"
        " is three times as long before the first step, and while there are log lines but no steps (default: 10m)"
    ),
    "quiet -": marked("show only what went wrong"),
    "timeout SECONDS": marked("end the job after this time, with exit code 124 (default: no limit)"),
    "stop_before SECONDS": marked(
        "ask the ranks to save and exit this long before --timeout, or before the time limit of the Slurm job; exit"
        " code 124"
    ),
    "hang_timeout SECONDS": marked(
        "end the job, with exit code 124, when no rank has written to its log for this long; save the stacks of"
        " all ranks first (default: no limit)"
    ),
    "max_restarts N": marked(
        "when a rank fails, restart all ranks, with RESUME=1 in their environment; at most N times in a row without"
        " a new step or checkpoint (default: 0)"
    ),
    "restart_limit N": marked(
        "with --max_restarts: at most N restarts in total, even if each makes progress (default: 100, or"
        " --max_restarts if that is more)"
    ),
    "restart_wait SECONDS": marked(
        "before a restart, wait at most this long until no process of the last attempt is left and its devices and"
        " ports are free, otherwise end the job; 0: do not check (default: 120)"
    ),
    "keep_going -": marked(
        "when a rank fails, keep the others running; the exit code is that of the rank that failed first"
    ),
    "leftovers wait|end": marked(
        "what to do with processes that a rank leaves when it ends with 0, such as those that a shell script has"
        " started with &: wait until they have ended, and fail if they do; or end them (default: wait)"
    ),
    "restart_args WORDS": marked(
        "more arguments for the trainer from the second attempt on, as one text that is split as in a shell, such"
        ' as "-o model.resume=True"'
    ),
    "resume [RUN]": marked(
        "continue from the newest run of this config that has checkpoints, or from RUN: the folder of a run or of"
        " its checkpoints, such as logs/latest; the next argument is RUN if it is such a folder; unambiguous:"
        " --resume=RUN or --resume=newest"
    ),
    "wait_for_devices -": marked("if other jobs hold the devices, wait until they are free"),
    "grace SECONDS": marked(
        "time between SIGTERM and SIGKILL when ranks are stopped, or asked to save and exit (default: 10;"
        " run_pod.sh: 25; when Slurm ends the job: its KillWait)"
    ),
    "bind_core [True|False|MAP]": marked(
        "bind each rank to its own cores, near its device; on CPU to an even share of the cores. A MAP in JSON"
        ' selects them, as for msrun: {"device0": ["0-3"], "device1": ["4-7"]}'
    ),
    "bind_numa [True|False|MAP|FILE]": marked(
        "bind each rank to all cores of the NUMA node of its device; ranks on one node share them. With a MAP, or a"
        " FILE in JSON with bind_cpu and bind_memory, as for msrun, the memory is also bound, with numactl"
    ),
    "no_check -": marked(
        "skip the checks that need NPUs and the check of a program's parallel mode, but still check the rank table"
    ),
    "lang zh|en": language.MEANING,
    "no_defaults -": marked("ignore the options that the variable MSLAUNCH_OPTIONS has for every launch"),
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
