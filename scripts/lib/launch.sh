# shellcheck shell=bash
# One launch, in the order in which it happens: command line -> plan -> start -> supervise -> report.

((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 402)) || {
  printf '%s: this is bash %s; 4.2 or later is needed\n' "${0##*/}" "$BASH_VERSION" >&2
  exit 78
}

LAUNCH_LIB=${BASH_SOURCE[0]%/*}
LAUNCH_ROOT=${LAUNCH_LIB%/scripts/lib}

for LAUNCH_PART in log cli plan rank_entry console supervise report; do
  # shellcheck source=/dev/null # each of them is checked as a file of its own
  source "$LAUNCH_LIB/$LAUNCH_PART.sh"
done

# launch::main KEY=VALUE... -- WORD...: launches what the user typed (WORDs) by what the script says:
#   engine        a file of lib/engines
#   arguments     names of the positional arguments; the plan gets each by its name in small letters
#   options       names of options that not every script has (CLI_OWN_OPTIONS), if it has any
#   without       names of options that make no sense for this script
#   device_target Ascend
#   devices       the range of devices if the user names none
#   device_num    devices that a host of this kind has
#   generation    chip generation whose rules hold for the rank table
#   config        the config if the user names none, in the project; for scripts with the option config
# A key that only tools/planner.py knows goes through to it.
launch::main() {
  local -A script=([options]='' [without]='' [arguments]='')
  local -a words=() names=()
  local key i
  while [[ $1 != -- ]]; do
    script[${1%%=*}]=${1#*=}
    shift
  done
  shift
  cli::declare "${script[options]}" "${script[without]}"
  cli::parse "${script[arguments]}" "$@"
  launch::_check_options
  [[ -z ${script[config]-} ]] || script[config]=$LAUNCH_ROOT/${script[config]}
  words=("script=$LOG_NAME" "script_devices=${script[devices]-}" "job_pid=$$")
  for key in "${!script[@]}"; do
    [[ $key == @(options|without|arguments|devices) ]] || words+=("$key=${script[$key]}")
  done
  for key in "${!OPTIONS[@]}"; do # after the script's own, so that the user's word counts
    [[ $key == @(grace|help) ]] || words+=("$key=${OPTIONS[$key]}")
  done
  read -r -a names <<<"${script[arguments]}"
  for i in "${!ARGUMENTS[@]}"; do
    key=${names[i],,}
    words+=("$key=${ARGUMENTS[i]}")
  done
  plan::make "${words[@]}" -- ${TRAINER_ARGUMENTS[@]+"${TRAINER_ARGUMENTS[@]}"}
  # shellcheck source=scripts/lib/engines/local.sh
  source "$LAUNCH_LIB/engines/${script[engine]}.sh"
  if [[ -n ${OPTIONS[dry_run]-} ]]; then
    plan::print
    return 0
  fi
  launch::_run
}

# What the shell itself needs of the options; the plan checks the others.
launch::_check_options() {
  local -r grace=${OPTIONS[grace]-10}
  [[ $grace =~ ^[0-9]{1,5}$ ]] || cli::usage "--grace $grace is not a number of seconds"
  SUPERVISE_GRACE=$((10#$grace))
}

# Starts the plan, waits for its end, reports it, and ends as the job ended.
launch::_run() {
  local status=0
  LAUNCH_JOB=${PLAN_RUN_DIR##*/}@$HOSTNAME
  LAUNCH_UMASK=$(umask)
  rank_entry::job_environment ${PLAN_EXPORTS[@]+"${PLAN_EXPORTS[@]}"}
  report::path "$PLAN_RUN_DIR"
  log::say "${#PLAN_RANKS[@]} rank(s) on device(s) ${PLAN_DEVICES[*]}, logs in $REPLY"
  : >"$PLAN_RUN_DIR/rank_${PLAN_RANKS[0]}.log"
  supervise::open "$LAUNCH_JOB"
  console::open "$PLAN_RUN_DIR/rank_${PLAN_RANKS[0]}.log"
  engine::start
  supervise::run
  supervise::close "$LAUNCH_JOB"
  console::finish
  if [[ -n $SUPERVISE_FIRST ]]; then
    status=${SUPERVISE_STATUS[$SUPERVISE_FIRST]}
  elif [[ -n $SUPERVISE_SIGNAL ]]; then
    status=$((128 + $(kill -l "$SUPERVISE_SIGNAL")))
  fi
  report::print
  report::save "$status"
  report::path "$PLAN_RUN_DIR"
  log::say "exit $status; logs and launch.json are in $REPLY"
  launch::_end "$status"
}

# A shell that waits for us must see that a signal ended us: so it does, in the end.
launch::_end() {
  if [[ -z $SUPERVISE_FIRST && -n $SUPERVISE_SIGNAL ]]; then
    trap - "$SUPERVISE_SIGNAL"
    kill -s "$SUPERVISE_SIGNAL" "$$"
  fi
  exit "$1"
}
