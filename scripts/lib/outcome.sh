# shellcheck shell=bash
# The outcome of a launch. One Python process, tools/diagnosis/finish.py, adds it to launch.json. After a failure the
# process also explains the cause and the remedy. finish.py describes the lines that it reads. Python needs 50 ms to
# start, so the launcher starts it when the first member has ended, and sends the rest when all have ended.

OUTCOME_PROCESS=''                 # its pid
OUTCOME_ASKS='' OUTCOME_ANSWERS='' # pipes to and from it
OUTCOME_FAILED=''                  # not empty: the process knows that a member has failed
OUTCOME_LINES=()                   # the lines for the process about all attempts so far, many in each text
OUTCOME_OOM_KILLS=0                # number of OOM kills on this machine before this attempt

outcome::begin() {
  outcome::_oom_kills
  OUTCOME_OOM_KILLS=$REPLY
}

# outcome::_oom_kills: the kernel's count of OOM kills since boot, in REPLY; 0 if the kernel does not report it.
outcome::_oom_kills() {
  local name value
  while read -r name value; do
    [[ $name == oom_kill && $value != *[!0-9]* ]] && REPLY=$((10#$value)) && return 0
  done 2>/dev/null </proc/vmstat
  REPLY=0
}

# outcome::get_ready: starts the process when a member has ended. It does not while other members are starting, because
# they need the processors more. It also does not if a rank could not be started, because there are too many processes.
outcome::get_ready() {
  if [[ -z $JUDGING_FIRST ]]; then
    ((${#MEMBERS_BEGAN[@]} == ${#MEMBERS_NAMES[@]})) || return 0
  elif ! outcome::_is_to_be_explained; then
    return 0
  fi
  outcome::_call
  if [[ -n $JUDGING_FIRST && -z $OUTCOME_FAILED ]]; then
    OUTCOME_FAILED=yes
    outcome::_tell $'failed\n'
  fi
}

# A rank that could not be started has no log to read, and report::first_failure has printed the reason.
outcome::_is_to_be_explained() {
  [[ -n $JUDGING_FIRST && -n ${MEMBERS_BEGAN[$JUDGING_FIRST]-}$CARRIED_ENGINE ]]
}

# Starts the process, unless it runs. It ignores signals to the launcher's group, and ends when the launcher ends.
outcome::_call() {
  local asks
  [[ -z $OUTCOME_ASKS ]] || return 0
  exec {asks}<> <(:)
  exec {OUTCOME_ANSWERS}< <(
    processes::ignore INT TERM HUP QUIT
    bus::say "$SUPERVISE_LIFELINE" helper "$BASHPID"
    supervise::close_pipes
    live::leave
    exec "$PYTHON" -S "$LAUNCH_ROOT/tools/diagnosis/finish.py" "$PLAN_RUN_DIR" <"/dev/fd/$asks" 2>/dev/null {asks}>&-
  )
  OUTCOME_PROCESS=$!
  exec {OUTCOME_ASKS}>"/dev/fd/$asks" {asks}>&-
}

# outcome::_tell LINES...: sends LINES to the process. SIGPIPE is ignored, so that the launcher survives if it has ended.
outcome::_tell() {
  trap '' PIPE
  { printf '%s' "$@" >&"$OUTCOME_ASKS"; } 2>/dev/null || :
  trap - PIPE
}

# outcome::exit_status: the script's exit code if the job ended now, in LAUNCH_STATUS.
outcome::exit_status() {
  if [[ -n $JUDGING_FIRST ]]; then
    LAUNCH_STATUS=${MEMBERS_STATUS[$JUDGING_FIRST]}
  elif [[ -n $LIMITS_REACHED ]]; then
    LAUNCH_STATUS=124 # as timeout(1) does
  elif [[ -n $STOPPING_SIGNAL ]]; then
    LAUNCH_STATUS=$((128 + $(kill -l "$STOPPING_SIGNAL")))
  else
    LAUNCH_STATUS=$ATTEMPTS_STATUS
  fi
}

# outcome::add STATUS: adds the lines about an attempt that has ended.
outcome::add() {
  local name seconds since until tenths lines='' ended stopped_by=$LIMITS_REACHED
  stopped_by=${stopped_by:-${STOPPING_SIGNAL:+SIG$STOPPING_SIGNAL}}
  stopped_by=${stopped_by:-$ATTEMPTS_HOST}
  TZ=UTC0 printf -v ended '%(%Y-%m-%dT%H:%M:%SZ)T' -1
  lines+="attempt $1 $ended .${PLAN_LOG_DIR#"$PLAN_RUN_DIR"}"$'\n'
  lines+=${JUDGING_FIRST:+"first_failure $JUDGING_FIRST"$'\n'}
  lines+=${stopped_by:+"stopped_by $stopped_by"$'\n'}
  lines+=${JUDGING_FIRST:+${REPORT_LOST_HOST:+"lost_host $REPORT_LOST_HOST"$'\n'}}
  for name in ${MEMBERS_NAMES[@]+"${MEMBERS_NAMES[@]}"}; do # no function for each: there may be 65,536
    seconds=- since=${MEMBERS_BEGAN[$name]-} until=${MEMBERS_ENDED[$name]-}
    if [[ -n $since && -n $until ]]; then # as in members::seconds
      tenths=$(((until - since) / 10))
      seconds=$((tenths / 10)).$((tenths % 10))
    fi
    [[ -z ${MEMBERS_FAILED[$name]-} || $name == "$JUDGING_FIRST" ]] || lines+="also_failed $name"$'\n'
    lines+="member $name ${MEMBERS_STATUS[$name]--} $seconds ${MEMBERS_PID[$name]--}"$'\n'
    if ((${#lines} > 8000)); then # bash copies all of a text to add to it
      OUTCOME_LINES+=("$lines")
      lines=''
    fi
  done
  OUTCOME_LINES+=("$lines")
}

# outcome::hand_over: sends all lines. Call it when all attempts have ended and none of their processes runs.
outcome::hand_over() {
  local oom_kills=-
  if outcome::_is_to_be_explained; then
    outcome::_oom_kills
    oom_kills=$((REPLY - OUTCOME_OOM_KILLS))
  fi
  [[ -z $PLAN_PLOGS ]] || OUTCOME_LINES+=("plogs ${PLAN_PLOGS%% *}"$'\n')
  ! monitor::names_slow_ranks || OUTCOME_LINES+=($'stragglers\n')
  OUTCOME_LINES+=("end $oom_kills"$'\n')
  outcome::_call
  outcome::_tell "${OUTCOME_LINES[@]}"
}

# outcome::report: waits until the outcome is saved, and prints the explanation of the failure.
outcome::report() {
  local line=''
  if ! outcome::_answer; then # the process could not be started in time, or was killed
    OUTCOME_ASKS=''
    outcome::_call
    outcome::_tell "${OUTCOME_LINES[@]}"
    outcome::_answer || :
  fi
  line=$REPLY
  if [[ -z $line ]]; then
    log::say $"the outcome is not in $PLAN_RUN_DIR/launch.json: $PYTHON could not be started, or was ended"
  elif [[ $line != saved && -d $PLAN_RUN_DIR ]]; then # the report has said that the folder is gone
    log::say $"the outcome is not saved: $line"
  fi
  while outcome::_answer; do
    log::say "$REPLY"
  done
}

# outcome::_answer: the next line of the process, in REPLY; fails at the end. If somebody has stopped the process, SIGCONT
# wakes it. The wait is for its own pipe, because that ends with it; see bus.sh about ends of children.
outcome::_answer() {
  until bus::next "$OUTCOME_ANSWERS" 0.1; do
    (($? > 128)) || return 1
    kill -CONT "$OUTCOME_PROCESS" 2>/dev/null || :
  done
}
