# shellcheck shell=bash
# The command line: every option of every script, the parser, and --help.
#
# Options are declared in the table below, and nowhere else. The parser reads it, --help prints it, and docs/options.md
# is generated from --help. Everything in this file works with bash 3.2, because doctor.sh runs there, too.

OPTIONS=()           # NAME=VALUE, with underscores, as the user gave them; a flag is 1; the last one counts
ARGUMENTS=()         # positional
TRAINER_ARGUMENTS=() # the words after --
CLI_TABLE=''         # this script's lines of CLI_OPTIONS
CLI_LAUNCHES=''      # not empty: this script launches, and the words after -- go to the trainer
CLI_ARGUMENTS=''     # names of the positional arguments, such as "CONFIG"
CLI_TAKEN=1          # number of words of the option that was read last
CLI_EXIT='0 if all ranks ended with 0; the code of the rank that failed first (128+N for signal N);
2 usage; 78 the launch was refused; 124 a time limit was reached; 128+N if signal N stopped the launcher.'

readonly CLI_NUMBER='^[0-9]{1,8}$'

# Name, value ("-": none; "[True|False]": a flag that also takes one of these words), meaning. Above the empty line: options that a script must name to have them. Below it:
# options of every script that launches.
readonly CLI_OPTIONS='config FILE the training config (default: the script'\''s own)
n N number of ranks (default: one for each slot of the hosts; without hosts 8)
no_sink - run operator by operator instead of sinking the graph (GRAPH_OP_RUN=1, HCCL_WHITELIST_DISABLE=1)
output_filename DIR also link the ranks'\'' logs there in Open MPI'\''s layout, DIR/1/rank.N/stdout
ssh COMMAND the command that reaches other hosts, such as "ssh -F FILE" (default: OMPI_MCA_plm_rsh_agent, else ssh)
hostfile FILE the hosts, in Open MPI'\''s syntax, one a line with slots=N; this command starts the ranks of all of them
network NAME the network between hosts that have several: an interface such as eth0, or a range such as 10.0.0.0/24
worker_num N ranks of the whole job (default: 8)
local_worker_num N ranks of this host (default: all of them)
master_addr HOST the host of --node_rank 0, where MindSpore'\''s scheduler runs (default: 127.0.0.1)
master_port PORT the scheduler'\''s port (default: a free one; with several hosts 8118)
node_rank N the number of this host among the hosts, from 0
ntasks_per_node N ranks of each node (default: as in the allocation)
format text|json a page for people, or the same for a program (default: text)

device_target Ascend|GPU|CPU the hardware that the ranks run on (default: the script'\''s; GPU: run_gpu.sh, run_mpirun*.sh, run_msrun.sh, run_slurm.sh); CPU: real MindSpore ranks on this machine, to try a launch without NPUs
devices RANGE the devices, such as "[4,8)" or "0,1,4,5" (default: the script'\''s own)
rank_table FILE the rank table (default: RANK_TABLE_FILE if it is set, else one in the current folder that fits, else a new one)
hccn_conf FILE addresses of the devices where hccn_tool is not on PATH (default: /etc/hccn.conf)
generation 910A|A2|A3|950|any the chip generation whose rules hold for devices and rank tables (default: that of this host'\''s NPUs if it has some, else any: only the rules of all generations)
train_script FILE the trainer (default: tools/train.py of the current folder, else of this project)
log_dir DIR folder for the logs of all runs; each run makes its own folder in it (default: logs)
console 0|all|none the output to show while the job runs: that of rank 0, that of all ranks with their numbers, or none (default: 0)
quiet - show only what went wrong
timeout SECONDS end the job after this time, with exit code 124 (default: no limit)
hang_timeout SECONDS end the job, with exit code 124, when no rank has written to its log for this long; save the stacks of all ranks first (default: no limit)
max_restarts N when a rank fails, start all of them again, at most N times, with RESUME=1 in their environment (default: 0)
wait_for_devices - if other jobs hold the devices, wait until they are free
grace SECONDS time between SIGTERM and SIGKILL when ranks are stopped (default: 10)
bind_core [True|False] bind each rank to cores of its own, near its device; on CPU an even share of the cores
bind_numa [True|False] bind each rank to all cores of the NUMA node of its device; ranks on one node share them
no_check - skip the checks that need the NPUs, but still check the rank table
dry_run - print the plan in a form that can be pasted into a shell; start and write nothing
help - print this page'

# cli::exit_codes TEXT: sets the text of --help for a script that does not launch.
cli::exit_codes() {
  CLI_EXIT=$1
}

# cli::declare NAMES [WITHOUT]: sets this script's options: those in NAMES. If WITHOUT is given, the script launches and
# also has all options below the empty line, except those in WITHOUT. Names are separated by blanks.
cli::declare() {
  local line name shared='' rest=$CLI_OPTIONS
  CLI_TABLE='' CLI_LAUNCHES=${2+yes}
  while [[ -n $rest ]]; do # a here-string needs a temporary file, for which there may be no room
    line=${rest%%$'\n'*}
    rest=${rest#"$line"}
    rest=${rest#$'\n'}
    name=" ${line%% *} "
    if [[ -z $line ]]; then
      shared=$CLI_LAUNCHES
    elif [[ " $1 " == *"$name"* || (-n $shared && " $2 " != *"$name"*) ]]; then
      CLI_TABLE+=${CLI_TABLE:+$'\n'}$line
    fi
  done
}

# cli::parse ARGUMENT_NAMES WORD...: fills OPTIONS, ARGUMENTS and TRAINER_ARGUMENTS; ends the script for --help.
cli::parse() {
  CLI_ARGUMENTS=$1
  shift
  while (($#)); do
    CLI_TAKEN=1
    case $1 in
      --)
        [[ -n $CLI_LAUNCHES ]] || cli::usage 'unknown option --'
        TRAINER_ARGUMENTS=("${@:2}")
        break
        ;;
      -h) OPTIONS+=(help=1) ;;
      --?*) cli::_option "$@" ;;
      -[0-9]*) ARGUMENTS+=("$1") ;; # a negative number; the plan checks it
      -?*) cli::_letter "$@" ;;
      *) ARGUMENTS+=("$1") ;;
    esac
    shift "$CLI_TAKEN"
  done
  if cli::given help; then
    cli::help
    exit 0
  fi
  cli::_check_count
}

# cli::value OPTION DEFAULT: what the user gave, else DEFAULT, in REPLY.
cli::value() {
  local word
  REPLY=$2
  for word in ${OPTIONS[@]+"${OPTIONS[@]}"}; do
    [[ $word != "$1="* ]] || REPLY=${word#*=}
  done
}

cli::given() {
  cli::value "$1" ''
  [[ -n $REPLY ]]
}

# cli::number OPTION DEFAULT: its value, a whole number, in REPLY.
cli::number() {
  cli::value "$@"
  [[ $REPLY =~ $CLI_NUMBER ]] || cli::usage "--$1 $REPLY is not a whole number of at most 8 digits"
  REPLY=$((10#$REPLY))
}

# cli::choice OPTION DEFAULT: its value, one of those in the table, in REPLY.
cli::choice() {
  local choices choice
  cli::_find "$1"
  choices=${REPLY%% *}
  cli::value "$@"
  for choice in ${choices//|/ }; do
    [[ $REPLY != "$choice" ]] || return 0
  done
  cli::usage "--$1 $REPLY: write one of ${choices//|/, }"
}

# cli::usage TEXT: prints the mistake and how to get help; exit 2.
cli::usage() {
  log::one_line "$0"
  log::die 2 "$1; see: bash $REPLY --help"
}

# cli::help: prints the script's header comment, then its options and exit codes.
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
    cli::_typed "$name"
    [[ $takes == - ]] || REPLY+=" $takes"
    printf '  %s\n      %s\n' "$REPLY" "$meaning"
  done < <(printf '%s\n' "$CLI_TABLE")
  printf '\nExit: %s\n' "$CLI_EXIT"
}

# cli::_option WORD...: takes one option and its value from the front; the number of words in CLI_TAKEN.
cli::_option() {
  local name=${1%%=*} takes typed value
  name=${name#--}
  name=${name//-/_}
  cli::_typed "$name"
  typed=$REPLY
  cli::_find "$name"
  takes=${REPLY%% *}
  if [[ -z $takes ]]; then
    cli::_unknown "$name" "${1%%=*}"
  elif [[ $takes == - ]]; then
    [[ $1 != *=* ]] || cli::usage "$typed takes no value"
    value=1
  elif [[ $takes == '['* ]]; then
    cli::_said_of_flag "$@"
    value=$REPLY
  elif [[ $1 == *=* ]]; then
    value=${1#*=}
  elif (($# > 1)) && [[ $2 != --* ]]; then
    value=$2
    CLI_TAKEN=2
  fi
  [[ -n ${value-} ]] || cli::usage "$typed needs a value: $typed $takes"
  [[ $takes != '['* || $value == 1 ]] || value=''
  OPTIONS+=("$name=$value")
}

# cli::_said_of_flag WORD...: whether the flag at the front, which True or False may follow, is on, in REPLY: 1 or 0.
cli::_said_of_flag() {
  local word=True
  if [[ $1 == *=* ]]; then
    word=${1#*=}
  elif (($# > 1)); then
    case $2 in
      [Tt]rue | [Ff]alse) word=$2 CLI_TAKEN=2 ;;
    esac
  fi
  case $word in
    [Tt]rue) REPLY=1 ;;
    [Ff]alse) REPLY=0 ;;
    *)
      log::one_line "$word"
      cli::usage "${1%%=*}=$REPLY: write ${1%%=*}, ${1%%=*}=True or ${1%%=*}=False"
      ;;
  esac
}

# cli::_letter WORD...: an option of one letter, such as -n 4, is the option of that name.
cli::_letter() {
  cli::_find "${1#-}"
  if [[ $1 != -? || -z $REPLY ]]; then
    cli::usage "unknown option $1${CLI_LAUNCHES:+; trainer arguments come after --}"
  fi
  cli::_option "-$1" "${@:2}"
}

# cli::_find NAME: what the option takes and its meaning, in REPLY; nothing if there is no such option.
cli::_find() {
  local -r table=$'\n'$CLI_TABLE$'\n' start=$'\n'"$1 "
  REPLY=''
  [[ $table == *"$start"* ]] || return 0
  REPLY=${table#*"$start"}
  REPLY=${REPLY%%$'\n'*}
}

# cli::_typed NAME: how the option is typed, in REPLY: -n for a name of one letter.
cli::_typed() {
  REPLY=--$1
  [[ $1 != ? ]] || REPLY=-$1
}

# cli::_unknown NAME WORD: refuses the option; for the rank table's options, the message names the alternative.
cli::_unknown() {
  local hint=''
  if [[ -n $CLI_LAUNCHES && ($1 == rank_table || $1 == hccn_conf) ]]; then
    if [[ $CLI_ARGUMENTS == *RANK_TABLE_FILE* ]]; then
      hint=': the rank table is the argument RANK_TABLE_FILE, or with --hostfile the option --rank_table'
    else
      hint=": $LOG_NAME needs no rank table, its ranks find each other without; with a rank table: scripts/ascend8p.sh and its like, on several hosts scripts/run_cluster.sh"
    fi
  fi
  cli::usage "unknown option $2$hint"
}

# cli::_check_count: refuses a missing or an extra argument, by name.
cli::_check_count() {
  # shellcheck disable=SC2206 # a list of names
  local -a names=($CLI_ARGUMENTS)
  if ((${#ARGUMENTS[@]} < ${#names[@]})); then
    cli::usage "${names[${#ARGUMENTS[@]}]} is missing"
  elif ((${#ARGUMENTS[@]} > ${#names[@]})); then
    log::one_line "${ARGUMENTS[${#names[@]}]}"
    cli::usage "one argument too many: $REPLY${CLI_LAUNCHES:+ (trainer arguments come after --)}"
  fi
}
