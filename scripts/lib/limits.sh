# shellcheck shell=bash
# The user's limits: the time of the whole job (--timeout), and the time without a line in any log (--hang_timeout).

LIMITS_TIMEOUT=0     # seconds that the job may run; 0: no limit
LIMITS_HANG=0        # seconds without a line in any rank's log; 0: no limit
LIMITS_REACHED=''    # timeout or hang, once one is reached
LIMITS_TIMEOUT_AT=0  # all times: uptime, in hundredths of a second
LIMITS_LOOK_AT=0     # when to look at the logs next
LIMITS_STILL_SINCE=0 # when the logs last changed
LIMITS_LOOK=''       # sizes and times of the logs at the last look
LIMITS_LOGS=()       # the ranks' logs
LIMITS_FILES=''      # which files these were when all of them were there
LIMITS_BLIND=''      # not empty: the user knows that we cannot see the logs

limits::set() {
  LIMITS_TIMEOUT=$1 LIMITS_HANG=$2
}

# limits::start: the job's time begins.
limits::start() {
  if ((LIMITS_HANG)) && ! command -v stat >/dev/null; then
    log::say $"--hang_timeout needs the program stat, which is not on PATH: it does not end the job"
    LIMITS_HANG=0
  fi
  clock::now
  LIMITS_TIMEOUT_AT=$((REPLY + LIMITS_TIMEOUT * 100))
}

# limits::watch LOG: adds the log of a rank.
limits::watch() {
  LIMITS_LOGS+=("$1")
}

# limits::watch_ranks: the same for all ranks of the plan.
limits::watch_ranks() {
  ((LIMITS_HANG)) || return 0
  LIMITS_LOGS=("${PLAN_RANKS[@]/#/$PLAN_LOG_DIR/rank_}")
  LIMITS_LOGS=("${LIMITS_LOGS[@]/%/.log}")
}

# limits::again: forgets the logs of an attempt that has ended.
limits::again() {
  LIMITS_LOGS=() LIMITS_LOOK='' LIMITS_LOOK_AT=0 LIMITS_FILES='' LIMITS_BLIND=''
}

# limits::log_has_grown: an agent reports that a log on another host has grown.
limits::log_has_grown() {
  LIMITS_LOOK=''
}

# limits::any: whether a limit is set.
limits::any() {
  ((LIMITS_TIMEOUT || LIMITS_HANG))
}

# limits::check: whether a limit is reached; if so, prints which.
limits::check() {
  limits::any || return 1
  clock::now
  if ((LIMITS_TIMEOUT && REPLY >= LIMITS_TIMEOUT_AT)); then
    LIMITS_REACHED=timeout
    log::say $"the job has run for $LIMITS_TIMEOUT s, its --timeout: stopping all ranks"
  elif ((LIMITS_HANG && REPLY >= LIMITS_LOOK_AT)) && limits::_logs_stand_still "$REPLY"; then
    LIMITS_REACHED=hang
    log::say $"no rank has written to its log for $LIMITS_HANG s, the --hang_timeout: saving the stacks of all ranks, then stopping them"
  fi
  [[ -n $LIMITS_REACHED ]]
}

# limits::_logs_stand_still NOW: whether no log has changed for LIMITS_HANG seconds. It compares sizes and times only
# for equality, so a step of the clock does no harm.
limits::_logs_stand_still() {
  local end step
  ((${#LIMITS_LOGS[@]})) || return 1
  [[ -n $LIMITS_FILES ]] || ! limits::_stat '%d:%i' || LIMITS_FILES=$REPLY
  limits::_stat '%s %y' || :
  if [[ $REPLY != "$LIMITS_LOOK" ]]; then
    LIMITS_LOOK=$REPLY LIMITS_STILL_SINCE=$1
  fi
  end=$((LIMITS_STILL_SINCE + LIMITS_HANG * 100))
  if (($1 >= end)); then
    limits::_is_blind || return 0
    LIMITS_STILL_SINCE=$1 end=$(($1 + LIMITS_HANG * 100))
  fi
  step=$((LIMITS_HANG < 10 ? 100 : LIMITS_HANG * 10))
  LIMITS_LOOK_AT=$(($1 + step < end ? $1 + step : end))
  return 1
}

# limits::_is_blind: whether the logs do not change for another reason than a hang; says so once. If a log was removed,
# moved or replaced, its rank goes on writing to the old file. Logs that were never there are those of ranks that hang
# before their start.
limits::_is_blind() {
  local why
  plan::logs_problem
  why=$REPLY
  if [[ -z $why && -n $LIMITS_FILES ]]; then
    limits::_stat '%d:%i' || :
    [[ $REPLY == "$LIMITS_FILES" ]] || why=$"logs of ranks were removed, moved or replaced"
  fi
  [[ -n $why ]] || return 1
  [[ -n $LIMITS_BLIND ]] || log::say $"$why; so --hang_timeout cannot see whether the ranks work, and does not end the job"
  LIMITS_BLIND=yes
}

# limits::_stat FORMAT: what stat(1) prints of all logs, in REPLY; fails if one is missing. A thousand logs at a time,
# because the kernel limits the length of a command.
limits::_stat() {
  local i
  REPLY=$(
    status=0
    for ((i = 0; i < ${#LIMITS_LOGS[@]}; i += 1000)); do
      stat -c "$1" -- "${LIMITS_LOGS[@]:i:1000}" || status=1
    done 2>/dev/null
    exit "$status"
  )
}
