# shellcheck shell=bash
# The outcome of a launch: into launch.json, and after a failure what it means and what to do about it. One Python
# process does both, tools/diagnosis/finish.py, where the lines are described that go to it. Python takes 50 ms until it
# has read what it needs, so it is called when the first member has ended, and told the rest when all have.

OUTCOME_ASKS='' OUTCOME_ANSWERS='' # pipes to and from that process
OUTCOME_FAILED=''                  # not empty: it knows that a member has failed
OUTCOME_LINES=''                   # what is to be told of all attempts so far
OUTCOME_OOM_KILLS=0                # processes that the kernel had killed for lack of memory before this attempt

# outcome::begin: an attempt begins.
outcome::begin() {
  outcome::_oom_kills
  OUTCOME_OOM_KILLS=$REPLY
}

# outcome::_oom_kills: that number, in REPLY; 0 where the kernel does not tell.
outcome::_oom_kills() {
  local name value
  while read -r name value; do
    [[ $name == oom_kill ]] && REPLY=$value && return 0
  done 2>/dev/null </proc/vmstat
  REPLY=0
}

# outcome::get_ready: a member has ended. While others still start, they need the processors more; and where not even
# a rank could be started, it would be one process too many.
outcome::get_ready() {
  if [[ -z $SUPERVISE_FIRST ]]; then
    ((${#MEMBERS_BEGAN[@]} == ${#MEMBERS_NAMES[@]})) || return 0
  elif ! outcome::_is_to_be_explained; then
    return 0
  fi
  outcome::_call
  if [[ -n $SUPERVISE_FIRST && -z $OUTCOME_FAILED ]]; then
    OUTCOME_FAILED=yes
    outcome::_tell $'failed\n'
  fi
}

# Of a rank that could not be started there is nothing to read, and report::first_failure has said why.
outcome::_is_to_be_explained() {
  [[ -n $SUPERVISE_FIRST && -n ${MEMBERS_BEGAN[$SUPERVISE_FIRST]-}$CARRIED_ENGINE ]]
}

# Calls the process, if it is not there. Signals to our group are not for it; it ends when we do.
outcome::_call() {
  local asks
  [[ -z $OUTCOME_ASKS ]] || return 0
  exec {asks}<> <(:)
  exec {OUTCOME_ANSWERS}< <(
    trap '' INT TERM HUP QUIT
    supervise::close_pipes
    console::close
    exec "$PYTHON" -S "$LAUNCH_ROOT/tools/diagnosis/finish.py" "$PLAN_RUN_DIR" <"/dev/fd/$asks" 2>/dev/null {asks}>&-
  )
  exec {OUTCOME_ASKS}>"/dev/fd/$asks" {asks}>&-
}

# outcome::_tell LINES: a process that has ended is no reason to end as well.
outcome::_tell() {
  trap '' PIPE
  { printf '%s' "$1" >&"$OUTCOME_ASKS"; } 2>/dev/null || :
  trap - PIPE
}

# outcome::add STATUS: an attempt has ended.
outcome::add() {
  local name ended stopped_by=$LIMITS_REACHED
  stopped_by=${stopped_by:-${STOPPING_SIGNAL:+SIG$STOPPING_SIGNAL}}
  printf -v ended '%(%Y-%m-%dT%H:%M:%SZ)T' -1
  OUTCOME_LINES+="attempt $1 $ended .${PLAN_LOG_DIR#"$PLAN_RUN_DIR"}"$'\n'
  OUTCOME_LINES+=${SUPERVISE_FIRST:+"first_failure $SUPERVISE_FIRST"$'\n'}
  OUTCOME_LINES+=${stopped_by:+"stopped_by $stopped_by"$'\n'}
  for name in ${MEMBERS_NAMES[@]+"${MEMBERS_NAMES[@]}"}; do
    members::seconds "$name"
    OUTCOME_LINES+="member $name ${MEMBERS_STATUS[$name]--} $REPLY"$'\n'
  done
}

# outcome::hand_over: all attempts have ended, and nothing of them runs.
outcome::hand_over() {
  local oom_kills=-
  if outcome::_is_to_be_explained; then
    outcome::_oom_kills
    oom_kills=$((REPLY - OUTCOME_OOM_KILLS))
  fi
  OUTCOME_LINES+="end $oom_kills"$'\n'
  outcome::_call
  outcome::_tell "$OUTCOME_LINES"
}

# outcome::report: waits until the outcome is saved, and prints what is known of the failure.
outcome::report() {
  local line=''
  if ! IFS= read -r -u "$OUTCOME_ANSWERS" line; then # the process could not be started in time, or was killed
    OUTCOME_ASKS=''
    outcome::_call
    outcome::_tell "$OUTCOME_LINES"
    IFS= read -r -u "$OUTCOME_ANSWERS" line || :
  fi
  if [[ $line != saved ]]; then
    log::say "the outcome could not be added to $PLAN_RUN_DIR/launch.json: is the disk full? (df -h)"
  fi
  while IFS= read -r line; do
    log::say "$line"
  done <&"$OUTCOME_ANSWERS"
}
