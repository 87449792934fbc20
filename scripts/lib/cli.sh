# shellcheck shell=bash
# The command line: options that all scripts share, and each script's own arguments.
#
# cli::parse fills OPTIONS (by name, underscores), ARGUMENTS (positional) and TRAINER_ARGUMENTS (what
# stands after --). The tables below are the one place where an option is declared: --help prints them
# and the parser reads them. The first holds for every script; from the second a script takes the
# options that it names.

declare -A OPTIONS=()
ARGUMENTS=()
TRAINER_ARGUMENTS=()
CLI_TAKEN=1
CLI_ARGUMENTS='' # their names

# name, value ("-": none), meaning
readonly CLI_OPTIONS='device_target Ascend|GPU|CPU what the ranks run on (default: the script'\''s; GPU: run_gpu.sh, run_mpirun*.sh, run_msrun.sh, run_slurm.sh); CPU: real MindSpore ranks on this machine, to try a launch without NPUs
devices RANGE which devices, such as "[4,8)" or "0,1,4,5" (default: the script'\''s own)
rank_table FILE the rank table (default: RANK_TABLE_FILE if it is set, else one in the current folder that fits, else one is built)
hccn_conf FILE addresses of the devices where hccn_tool is not on PATH (default: /etc/hccn.conf)
train_script FILE the trainer (default: tools/train.py of the current folder, else of this project)
log_dir DIR folder for the logs of all runs; each makes its own folder in it (default: logs)
console 0|all|none whose output is on the screen while the job runs: rank 0'\''s, all ranks'\'' with their numbers, or nothing (default: 0)
quiet - nothing on the screen but what went wrong
timeout SECONDS end the job after this time, with exit code 124 (default: no limit)
hang_timeout SECONDS end the job, with exit code 124, when no rank has written to its log for this long; the stacks of all ranks are saved first (default: no limit)
max_restarts N when a rank fails, start all of them again, at most N times, with RESUME=1 in their environment (default: 0)
wait_for_devices - wait until other jobs have freed the devices, instead of ending
grace SECONDS time between SIGTERM and SIGKILL when ranks are stopped (default: 10)
no_check - skip the checks that need the NPUs; those of the rank table stay
dry_run - print the plan in a form that can be pasted into a shell; start and write nothing
help - this page'

readonly CLI_OWN_OPTIONS='config FILE the training config (default: the script'\''s own)
n N how many ranks (default: one a slot; 8 where there are no hosts)
no_sink - do not sink: run operator by operator (GRAPH_OP_RUN=1, HCCL_WHITELIST_DISABLE=1)
output_filename DIR also links the ranks'\'' logs there in Open MPI'\''s layout, DIR/1/rank.N/stdout
ssh COMMAND what reaches other hosts, such as "ssh -F FILE" (default: OMPI_MCA_plm_rsh_agent, else ssh)
hostfile FILE the hosts, in Open MPI'\''s syntax, one a line with slots=N; the ranks of all are started from here
network NAME the network between the hosts, where they have several: an interface such as eth0, or a range such as 10.0.0.0/24
worker_num N ranks of the whole job (default: 8)
local_worker_num N ranks of this host (default: all of them)
master_addr HOST the host of --node_rank 0, where MindSpore'\''s scheduler runs (default: 127.0.0.1)
master_port PORT the scheduler'\''s port (default: a free one; with several hosts 8118)
node_rank N which of the hosts this is, from 0
ntasks_per_node N ranks of each node (default: as the allocation says)'

CLI_TABLE=$CLI_OPTIONS # the options of this script

# cli::declare OWN WITHOUT: takes the options named in OWN from the second table, and those named in
# WITHOUT from the first away; names separated by blanks.
cli::declare() {
  local line
  CLI_TABLE=''
  while IFS= read -r line; do
    [[ " $1 " != *" ${line%% *} "* ]] || CLI_TABLE+=${CLI_TABLE:+$'\n'}$line
  done <<<"$CLI_OWN_OPTIONS"
  while IFS= read -r line; do
    [[ " $2 " == *" ${line%% *} "* ]] || CLI_TABLE+=${CLI_TABLE:+$'\n'}$line
  done <<<"$CLI_OPTIONS"
}

# cli::parse ARGUMENT_NAMES WORD...: ARGUMENT_NAMES such as "CONFIG", separated by blanks.
cli::parse() {
  local -r names=$1
  shift
  CLI_ARGUMENTS=$names
  while (($#)); do
    case $1 in
      --) shift && TRAINER_ARGUMENTS=("$@") && break ;;
      -h) OPTIONS[help]=1 && CLI_TAKEN=1 ;;
      -[0-9]*) ARGUMENTS+=("$1") && CLI_TAKEN=1 ;; # a number, right or wrong
      --?*) cli::_option "$@" ;;
      -?*) cli::_letter "$@" ;;
      *) ARGUMENTS+=("$1") && CLI_TAKEN=1 ;;
    esac
    shift "$CLI_TAKEN"
  done
  [[ -z ${OPTIONS[help]-} ]] || { cli::help && exit 0; }
  cli::_count "$names"
}

# cli::_option WORD...: takes one option and its value from the front; CLI_TAKEN says how many words.
cli::_option() {
  local name=${1%%=*} takes shown
  name=${name#--}
  name=${name//-/_}
  cli::_shown "$name"
  shown=$REPLY
  cli::_takes "$name" || cli::_unknown "$name" "${1%%=*}"
  takes=$REPLY
  CLI_TAKEN=1
  if [[ $takes == - ]]; then
    [[ $1 != *=* ]] || cli::usage "$shown takes no value"
    OPTIONS[$name]=1
  elif [[ $1 == *=* ]]; then
    OPTIONS[$name]=${1#*=}
  elif (($# > 1)) && [[ $2 != --* ]]; then
    OPTIONS[$name]=$2
    CLI_TAKEN=2
  else
    cli::usage "$shown needs a value: $shown $takes"
  fi
  [[ $takes == - || -n ${OPTIONS[$name]} ]] || cli::usage "$shown needs a value: $shown $takes"
}

# cli::_unknown NAME WORD: refuses the option; what there is instead, for one that other scripts have.
cli::_unknown() {
  if [[ $1 != @(rank_table|hccn_conf) ]]; then
    cli::usage "unknown option $2"
  elif [[ $CLI_ARGUMENTS == *RANK_TABLE_FILE* ]]; then
    cli::usage "unknown option $2: the rank table is the argument RANK_TABLE_FILE, or with --hostfile the option --rank_table"
  else
    cli::usage "unknown option $2: $LOG_NAME needs no rank table, its ranks find each other without; with a rank table: scripts/ascend8p.sh and its like, on several hosts scripts/run_cluster.sh"
  fi
}

# cli::_letter WORD...: an option of one letter, such as -n 4, is the option of that name.
cli::_letter() {
  if [[ $1 != -? ]] || ! cli::_takes "${1#-}"; then
    cli::usage "unknown option $1; trainer arguments come after --"
  fi
  cli::_option "-$1" "${@:2}"
}

# cli::_shown NAME: how the option is typed, in REPLY; the name of a short one is a letter.
cli::_shown() {
  REPLY=--$1
  [[ $1 != ? ]] || REPLY=-$1
}

# cli::_takes NAME: what the option takes in REPLY; fails if there is no such option.
cli::_takes() {
  local name takes _meaning
  while read -r name takes _meaning; do
    [[ $name == "$1" ]] && REPLY=$takes && return 0
  done <<<"$CLI_TABLE"
  return 1
}

# cli::_count NAMES: refuses a missing or an extra argument, by name.
cli::_count() {
  local -a names
  read -r -a names <<<"$1"
  ((${#ARGUMENTS[@]} >= ${#names[@]})) || cli::usage "${names[${#ARGUMENTS[@]}]} is missing"
  if ((${#ARGUMENTS[@]} > ${#names[@]})); then
    log::one_line "${ARGUMENTS[${#names[@]}]}"
    cli::usage "one argument too many: $REPLY (trainer arguments come after --)"
  fi
}

# cli::usage TEXT: the mistake, and where help is; exit 2.
cli::usage() {
  log::die 2 "$1; see: bash $0 --help"
}

# cli::help: the script's header comment, then the options.
cli::help() {
  local line name takes meaning
  while IFS= read -r line; do
    [[ $line == '#!'* ]] && continue
    [[ $line == '#'* ]] || break
    line=${line#\#}
    printf '%s\n' "${line# }"
  done <"$0"
  printf '\nOptions (hyphens and underscores are the same):\n'
  while read -r name takes meaning; do
    [[ $takes != - ]] || takes=''
    cli::_shown "$name"
    printf '  %s\n      %s\n' "$REPLY${takes:+ $takes}" "$meaning"
  done <<<"$CLI_TABLE"
  printf '\nExit: 0 all ranks ended with 0; a rank'\''s own code (128+N for signal N) when it failed first;\n'
  printf '2 usage; 78 the plan was refused; 124 a limit of time was reached; 128+N when the launcher itself was\n'
  printf 'stopped by signal N.\n'
}
