# shellcheck shell=bash
# One launch, in the order in which it happens: command line -> plan -> start -> supervise -> report.

# shellcheck disable=SC2154 # the path of the script that reads this file; BASH_SOURCE is what the caller exported
LAUNCH_LIB=${LAUNCH_SCRIPT%/*}/lib
LAUNCH_ROOT=${LAUNCH_LIB%/scripts/lib}

# shellcheck source=scripts/lib/own_shell.sh
source "$LAUNCH_LIB/own_shell.sh"
# shellcheck source=scripts/lib/language.sh
source "$LAUNCH_LIB/language.sh"
# shellcheck source=scripts/lib/log.sh
source "$LAUNCH_LIB/log.sh"
# shellcheck source=scripts/lib/system.sh
source "$LAUNCH_LIB/system.sh"
system::require # before an old bash reads files that it cannot parse
system::open_streams

for LAUNCH_PART in clock alike option_table cli help synonyms mpirun_table mpirun_words program quoted python bus processes members plan dry_run plogs rank_entry limits carried stopping judging attempts unreported supervise output console live pods engine report stacks outcome together elastic watch page announce monitor; do
  # shellcheck source=/dev/null # each of them is checked as a file of its own
  source "$LAUNCH_LIB/$LAUNCH_PART.sh"
done

# launch::main KEY=VALUE... -- WORD...: launches what the user typed (WORDs). The script sets these KEYs:
#   engine        a file of lib/engines
#   arguments     names of the positional arguments; the plan gets each under its name in lower case
#   options       names of options that not every script has (see option_table.sh)
#   without       names of options that make no sense for this script
#   device_target Ascend
#   devices       the default range of devices
#   device_num    DEVICE_NUM, where the script's tutorial has another number than that of the host's ranks
#   others        a file with the options of another launcher, see lib/mpirun_words.sh
#   quoted        quoted: the program is one quoted argument, see lib/quoted.sh
#   grace         the default of --grace
#   default_config  relative to the project; only for scripts with the option config
# Other keys are for tools/launch/plan.py and are passed on to it.
launch::main() {
  local -A script=([options]='' [without]='' [arguments]='')
  local -a words=() names=()
  local key word target i
  while [[ $1 != -- ]]; do
    script[${1%%=*}]=${1#*=}
    shift
  done
  shift
  trap 'launch::_given_up "$?"' EXIT
  [[ ${script[arguments]} != CONFIG ]] || script[options]+=' config'
  cli::declare "${script[options]}" "${script[without]}"
  cli::programs "${script[quoted]-program}" "${script[others]-} synonyms"
  cli::parse "${script[arguments]}" "$@"
  mpirun_words::check
  launch::_check_options "${script[grace]-10}"
  [[ ${script[placement]-} != pod ]] || pods::begin
  [[ -z ${script[default_config]-} ]] || script[default_config]=$LAUNCH_ROOT/${script[default_config]}
  words=("script=$LOG_NAME" "script_devices=${script[devices]-}" "job_pid=$$" "typed=$CLI_TYPED")
  for key in "${!script[@]}"; do
    [[ $key == @(options|without|arguments|devices|others|grace) ]] || words+=("$key=${script[$key]}")
  done
  for word in ${OPTIONS[@]+"${OPTIONS[@]}"}; do # after the script's words, because the last one counts
    [[ $word == @(console|grace|hang_timeout|keep_going|lang|max_restarts|report|timeout)=* ]] || words+=("$word")
  done
  # shellcheck disable=SC2206 # a list of names
  names=($CLI_ARGUMENTS)
  for i in "${!ARGUMENTS[@]}"; do
    launch::_lower "${names[i]}" 2>/dev/null # bash complains when it goes back to a locale that this machine lacks
    words+=("$REPLY=${ARGUMENTS[i]}")
  done
  for word in "${words[@]}"; do # device_target is an argument of some scripts and an option of others
    [[ $word != device_target=* ]] || target=${word#*=}
  done
  if ! cli::given dry_run && { [[ ${target,,} != cpu ]] || cli::given bind_core; }; then
    plan::lock_file
  fi
  words+=("max_restarts=$LAUNCH_RESTARTS" "lock_fd=$PLAN_LOCK_FD" "lock_file=$PLAN_LOCK_FILE")
  ((${#PROGRAM[@]} == 0)) || words+=(program=1)
  words+=(-- ${TRAINER_ARGUMENTS[@]+"${TRAINER_ARGUMENTS[@]}"} ${PROGRAM[@]+"${PROGRAM[@]}"})
  plan::make "${words[@]}"
  elastic::remember "${words[@]}"
  pods::planned
  log::tell
  # shellcheck source=scripts/lib/engines/local.sh
  source "$LAUNCH_LIB/engines/${script[engine]}.sh"
  if cli::given dry_run; then
    launch::_print
  else
    launch::_run
  fi
}

# launch::_lower TEXT: TEXT in lower case, in REPLY. In Turkish the small letter of I has no dot.
launch::_lower() {
  local LC_ALL=C
  REPLY=${1,,}
}

# --dry_run: prints the plan as shell commands.
launch::_print() {
  dry_run::environment
  engine::scheduler
  dry_run::scheduler
  engine::print
  printf 'wait\n'
}

# launch::_check_options GRACE: checks the options that the shell itself uses; the plan checks the others.
launch::_check_options() {
  local timeout factor
  cli::number grace "$1"
  stopping::set_grace "$REPLY"
  cli::number timeout 0
  timeout=$REPLY
  cli::number hang_timeout 0
  limits::set "$timeout" "$REPLY"
  cli::number max_restarts 0
  LAUNCH_RESTARTS=$REPLY
  if cli::given keep_going; then
    ((LAUNCH_RESTARTS == 0)) || cli::usage $"--keep_going lets ranks go on when one fails, --max_restarts starts all of them again; give one of them"
    stopping::keep_going
  fi
  ! cli::given restart_args || cli::given max_restarts || cli::usage $"--restart_args is for restarts; add --max_restarts N"
  ! cli::given quiet || { log::only_problems && console::show none; }
  ! cli::given watch_plogs || watch::on
  ! cli::given report || page::want
  cli::value straggler ''
  factor=$REPLY
  cli::value metrics ''
  monitor::set "$factor" "$REPLY"
  cli::choice keep_plogs failed
  cli::choice console "$CONSOLE_SHOWS"
  console::show "$REPLY"
}

# Starts the plan, waits for its end, reports it, and exits with the job's status.
launch::_run() {
  local -i restart=0 pause=1
  local host
  read -r host </proc/sys/kernel/hostname # HOSTNAME is what the caller exported
  # One from the caller's shell is exported: our own processes would get the mark, and be swept.
  unset LAUNCH_JOB
  LAUNCH_JOB=${PLAN_RUN_DIR##*/}@$host
  system::umask
  LAUNCH_UMASK=$REPLY
  rank_entry::job_environment ${PLAN_EXPORTS[@]+"${PLAN_EXPORTS[@]}"}
  announce::start
  supervise::on member launch::_become
  supervise::on failed launch::_failed
  supervise::on ended launch::_member_ended
  supervise::on hang launch::_hangs
  supervise::on stops together::tell
  supervise::open "$LAUNCH_JOB"
  limits::start
  stopping::keeps_going || attempts::open "$SUPERVISE_BUS" "$SUPERVISE_LIFELINE"
  pods::open "$SUPERVISE_BUS" "$SUPERVISE_LIFELINE"
  ! together::is_ready || launch::_attempt
  while ((restart < LAUNCH_RESTARTS)) && together::has_failed; do
    restart+=1
    { plan::make_logs "$restart" && elastic::prepare "$restart"; } || break
    outcome::add "$LAUNCH_STATUS"
    log::say $"restart $restart of $LAUNCH_RESTARTS in $pause s"
    supervise::again
    attempts::again "$restart"
    clock::now
    { supervise::wait_until clock::reached "$((REPLY + pause * 100))" && together::is_ready; } || break
    pause=$((pause < 32 ? pause * 2 : 60))
    launch::_next_attempt "$restart"
    export RESUME=1
    launch::_attempt
  done
  together::tell
  pods::close
  attempts::close
  plan::unlock
  outcome::exit_status
  monitor::finish "$LAUNCH_STATUS" # before the outcome, which has its slow ranks
  live::rest
  outcome::add "$LAUNCH_STATUS"
  outcome::hand_over
  report::print
  elastic::report
  outcome::report
  page::write "$LAUNCH_STATUS"
  supervise::close "$LAUNCH_JOB" # until now the guardian also watches over the processes of outcome and page
  page::where
  if ((LAUNCH_STATUS)); then
    log::say $"exit $LAUNCH_STATUS$REPLY"
  else
    announce::silence
    log::note $"exit 0$REPLY"
  fi
  launch::_end "$LAUNCH_STATUS"
}

# launch::_become COMMAND...: in the new process of a member: closes pipes that are not for it, then runs COMMAND.
launch::_become() {
  live::leave
  monitor::close
  "$@"
}

# No rank has written for too long: where they are in their code, and what CANN's logs say.
launch::_hangs() {
  stacks::report
  watch::report
}

# launch::_failed NAME stop|go: a member has failed.
launch::_failed() {
  report::failure "$@"
  monitor::failed "$1" "${MEMBERS_STATUS[$1]}"
}

# If a restart may follow, the outcome is not urgent: outcome::hand_over starts its process at the end.
launch::_member_ended() {
  ((LAUNCH_RESTARTS)) || outcome::get_ready
}

# Runs all ranks once, from their start to their end.
launch::_attempt() {
  LAUNCH_LOGS=$PLAN_LOG_DIR LAUNCH_PLOGS=$PLAN_PLOGS
  live::open
  watch::open
  monitor::begin "$ATTEMPTS_NUMBER"
  engine::start
  outcome::begin
  supervise::run
  processes::sweep "$LAUNCH_JOB"
  watch::finish
  live::finish
  together::await
  outcome::exit_status
}

# launch::_next_attempt N: gives restart N its command, and its own logs. If train.log links to this job's log, it follows.
launch::_next_attempt() {
  local -r old=$PLAN_LOG_DIR/rank_${PLAN_RANKS[0]-}.log
  elastic::take "$1"
  plan::next_attempt "$1"
  if [[ -L train.log && train.log -ef $old ]]; then
    report::path "$PLAN_LOG_DIR"
    ln -sfn -- "$REPLY/${old##*/}" train.log || :
  fi
}

# launch::_given_up STATUS: the EXIT trap. The only safe step is to exec another program when the shell ended with 254
# (bash could not start another process), or with an internal error while ranks run. So the exec comes first: bash 5.2
# may wait in any command before it for a rank that waits forever. stderr may be elsewhere, see live.sh.
launch::_given_up() {
  [[ $1 != 254 && -z $SUPERVISE_GUARDIAN ]] \
    || exec "$BASH" "$LAUNCH_LIB/abandoned.sh" "$1" "$LOG_NAME" "$SUPERVISE_GUARDIAN" "$SUPERVISE_LIFELINE" "$SUPERVISE_BUS" \
      ${MEMBERS_MINDER[@]+"${MEMBERS_MINDER[@]}"} 2>&"$((LIVE_STDERR ? LIVE_STDERR : 2))"
  live::own_stderr
}

# Ends the launcher by the signal that stopped it, so that the shell which waits for it sees this.
launch::_end() {
  trap - EXIT # the job's own exit code may be 254
  if [[ -z $JUDGING_FIRST && -z $LIMITS_REACHED && -n $STOPPING_SIGNAL ]]; then
    trap - "$STOPPING_SIGNAL"
    kill -s "$STOPPING_SIGNAL" "$$"
  fi
  exit "$1"
}
