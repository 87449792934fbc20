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

limits::set() {
  LIMITS_TIMEOUT=$1 LIMITS_HANG=$2
}

# limits::start: the job's time begins.
limits::start() {
  clock::now
  LIMITS_TIMEOUT_AT=$((REPLY + LIMITS_TIMEOUT * 100))
}

# limits::watch LOG: adds the log of a rank.
limits::watch() {
  LIMITS_LOGS+=("$1")
}

# limits::again: forgets the logs of an attempt that has ended.
limits::again() {
  LIMITS_LOGS=() LIMITS_LOOK='' LIMITS_LOOK_AT=0
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
    log::say "the job has run for $LIMITS_TIMEOUT s, its --timeout: stopping all ranks"
  elif ((LIMITS_HANG && REPLY >= LIMITS_LOOK_AT)) && limits::_logs_stand_still "$REPLY"; then
    LIMITS_REACHED=hang
    log::say "no rank has written to its log for $LIMITS_HANG s, the --hang_timeout: saving the stacks of all ranks, then stopping them"
  fi
  [[ -n $LIMITS_REACHED ]]
}

# limits::_logs_stand_still NOW: whether no log has changed for LIMITS_HANG seconds. It compares sizes and times only
# for equality, so a step of the clock does no harm.
limits::_logs_stand_still() {
  local look end step
  ((${#LIMITS_LOGS[@]})) || return 1
  look=$(stat -c '%s %y' -- "${LIMITS_LOGS[@]}" 2>&1) || :
  if [[ $look != "$LIMITS_LOOK" ]]; then
    LIMITS_LOOK=$look LIMITS_STILL_SINCE=$1
  fi
  end=$((LIMITS_STILL_SINCE + LIMITS_HANG * 100))
  step=$((LIMITS_HANG < 10 ? 100 : LIMITS_HANG * 10))
  LIMITS_LOOK_AT=$(($1 + step < end ? $1 + step : end))
  (($1 >= end))
}
