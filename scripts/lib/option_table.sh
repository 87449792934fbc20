# shellcheck shell=bash
# Every option of every script. They are declared in this table, and nowhere else: cli.sh reads it, --help prints it, and
# docs/options.md is generated from --help.

# Name, value ("-": none; "[True|False]": a flag that one of these words may follow; "[RUN]": see program::is_run), meaning. Above the line ---:
# options that a script must name to have them. Below it: options of every script that launches.
readonly OPTION_TABLE='config FILE '$"the training config, whatever its name (default: the argument CONFIG, else the script's own)"'
n N '$"number of ranks, also --nproc (default: launch.sh: the NPUs of this machine; else one for each slot of the hosts, without hosts 8)"'
no_sink - '$"run operator by operator instead of sinking the graph (jit_level O0, GRAPH_OP_RUN=1, HCCL_WHITELIST_DISABLE=1)"'
output_filename DIR '$"also link the ranks' logs there in Open MPI's layout, DIR/1/rank.N/stdout"'
ssh COMMAND '$"the command that reaches other hosts, such as \"ssh -F FILE\" (default: OMPI_MCA_plm_rsh_agent, else ssh)"'
hostfile FILE '$"the hosts, in Open MPI's syntax, one a line with slots=N; this command starts the ranks of all of them"'
network NAME '$"the network between hosts that have several: an interface such as eth0, or a range such as 10.0.0.0/24"'
worker_num N '$"ranks of the whole job (default: 8; run_pod.sh: as the environment says)"'
local_worker_num N '$"ranks of this host (default: all of them; run_pod.sh: as the environment says)"'
master_addr HOST '$"the host of --node_rank 0, where MindSpore's scheduler runs (default: 127.0.0.1; run_pod.sh: as the environment says)"'
master_port PORT '$"the scheduler's port (default: a free one; with several hosts 8118)"'
node_rank N '$"the number of this host among the hosts, from 0"'
table_dir DIR '$"a folder that all pods share, without an operator: each pod writes its devices there, pod 0 the rank table"'
pod_wait SECONDS '$"how long to wait for the rank table and for the other pods; exit code 124 after it (default: 1800)"'
ntasks_per_node N '$"ranks of each node (default: as in the allocation)"'
spare N '$"the last N hosts stand by: one of them takes the place of a host that is lost; needs --max_restarts. In a hostfile, the word spare after a host does the same"'
min_ranks N '$"when a host is lost, start again only with at least N ranks, else end the job; needs --max_restarts (default: 1)"'
format text|json '$"a page for people, or the same for a program (default: text)"'
---
device_target Ascend|GPU|CPU '$"the hardware that the ranks run on (default: the script's; GPU: run_gpu.sh, run_mpirun*.sh, run_msrun.sh, run_slurm.sh); CPU: real MindSpore ranks on this machine, to try a launch without NPUs"'
devices RANGE '$"the devices, such as \"[4,8)\" or \"0,1,4,5\" (default: the script's own)"'
rank_table FILE '$"the rank table (default: RANK_TABLE_FILE if it is set, else one in the current folder or beside the program that fits, else a new one)"'
hccn_conf FILE '$"addresses of the devices where hccn_tool is not on PATH (default: /etc/hccn.conf)"'
generation 910A|A2|A3|950|any '$"the chip generation whose rules hold for devices and rank tables (default: that of this host's NPUs if it has some, else any: only the rules of all generations)"'
train_script FILE '$"the Python file that trains; with a config it gets --config CONFIG, else only the words after -- (default: tools/train.py of the current folder, else of this project)"'
pytest FILE '$"run this file of tests, or one of its tests as FILE::TEST, in every rank with: python -m pytest -s"'
log_dir DIR '$"folder for the logs of all runs; each run makes its own folder in it (default: logs)"'
console 0|all|table|none '$"the output to show while the job runs: that of rank 0, that of all ranks with their numbers, a live table of the ranks, or none (default: 0)"'
keep_plogs failed|all|none '$"which of CANN's own logs, the plogs, stay after the run on NPUs: those of an attempt that failed, cut to 64 MiB a rank, all, or none (default: failed)"'
watch_plogs - '$"on NPUs: print a line when a known fault comes into the plog of a rank while the job runs, such as an RDMA packet without an answer, and again when it has come 10, 100, 1000 times"'
report - '$"when the job has ended, write a page about it, report.html in the run's folder: curves, a time line, what went wrong; after a failure it is also written without this option, if that takes less than a second"'
straggler FACTOR '$"name a rank, once while the job runs and again in the report, whose step has taken FACTOR times the median, such as 1.5, for 20 steps (default: off)"'
metrics FILE '$"while the job runs write its state to FILE in Prometheus' text format, for node_exporter's textfile collector; FILE ending with .jsonl: add lines of JSON (default: off)"'
quiet - '$"show only what went wrong"'
timeout SECONDS '$"end the job after this time, with exit code 124 (default: no limit)"'
hang_timeout SECONDS '$"end the job, with exit code 124, when no rank has written to its log for this long; save the stacks of all ranks first (default: no limit)"'
max_restarts N '$"when a rank fails, start all of them again, at most N times, with RESUME=1 in their environment (default: 0)"'
keep_going - '$"when a rank fails, let the others go on; the exit code is that of the rank that failed first"'
restart_args WORDS '$"more words for the trainer from the second attempt on, in one text that is split as a shell splits words, such as \"-o model.resume=True\""'
resume [RUN] '$"go on from the newest run of this config that has checkpoints, or from RUN: the folder of a run or of its checkpoints, such as logs/latest; the next word is RUN if it is such a folder; without doubt: --resume=RUN or --resume=newest"'
wait_for_devices - '$"if other jobs hold the devices, wait until they are free"'
grace SECONDS '$"time between SIGTERM and SIGKILL when ranks are stopped (default: 10; run_pod.sh: 25)"'
bind_core [True|False] '$"bind each rank to cores of its own, near its device; on CPU an even share of the cores"'
bind_numa [True|False] '$"bind each rank to all cores of the NUMA node of its device; ranks on one node share them"'
no_check - '$"skip the checks that need the NPUs, and that of a program's parallel mode, but still check the rank table"'
lang zh|en '$"the language of the messages (default: that of your locale)"'
dry_run - '$"print the plan in a form that can be pasted into a shell; start and write nothing"'
help - '$"print this page"

# option_table::typed NAME: how the option is typed, in REPLY: -n for a name of one letter.
option_table::typed() {
  REPLY=--$1
  [[ $1 != ? ]] || REPLY=-$1
}

# option_table::find TABLE NAME: the rest of NAME's line in a table, in REPLY; if there is none, it fails, and REPLY is empty. It
# goes line by line, because ${table#*NAME} compares every beginning of the table: milliseconds for 7 kB.
option_table::find() {
  local line IFS=$'\n'
  REPLY=''
  set -f
  for line in $1; do
    if [[ ${line%% *} == "$2" ]]; then
      REPLY=${line#* }
      break
    fi
  done
  set +f
  [[ -n $REPLY ]]
}
