# shellcheck shell=bash
# How a job is stopped: SIGTERM to every member, the grace time, SIGKILL to what is left; and the signals that tell us
# to. Only functions of this file change these variables.

STOPPING_STATE=running # running, stopping, killing
STOPPING_GRACE=10      # seconds between SIGTERM and SIGKILL
STOPPING_DEADLINE=0    # of the state: uptime, in hundredths of a second
STOPPING_SIGNAL=''     # the signal that told us to stop
STOPPING_CANCELLED=''  # not empty: the engine ends the ranks on its own account

# stopping::set_grace SECONDS
stopping::set_grace() {
  STOPPING_GRACE=$1
}

# stopping::again: all members have ended; those of the next attempt run.
stopping::again() {
  STOPPING_STATE=running STOPPING_DEADLINE=0
}

# stopping::soon: how a member ends from now on is our doing.
stopping::soon() {
  STOPPING_STATE=stopping
}

# stopping::begin: SIGTERM to all, and SIGKILL to what is left after the grace time; where an engine's agents stop
# the ranks, they are the first to kill.
stopping::begin() {
  STOPPING_STATE=stopping
  stopping::_set_deadline "$((STOPPING_GRACE + CARRIED_WAY))"
  carried::stop
  stopping::signal_groups TERM
}

# stopping::signal_groups SIGNAL: to all that is left.
stopping::signal_groups() {
  local name
  for name in "${!MEMBERS_GROUP[@]}"; do
    processes::signal "$1" "${MEMBERS_GROUP[$name]}"
  done
}

stopping::_set_deadline() {
  clock::now
  STOPPING_DEADLINE=$((REPLY + $1 * 100))
}

# stopping::check: looks whether the grace time is over; while it is not, that the engine has the order.
stopping::check() {
  ((STOPPING_DEADLINE)) || return 0
  if ! clock::reached "$STOPPING_DEADLINE"; then
    [[ $STOPPING_STATE != stopping ]] || carried::repeat_order
  elif [[ $STOPPING_STATE == killing ]]; then
    stopping::_give_up
  else
    STOPPING_STATE=killing
    stopping::_set_deadline 5
    stopping::signal_groups KILL
  fi
}

# Not even SIGKILL ends a process that waits inside the kernel, for a device say.
stopping::_give_up() {
  local name group
  for name in "${!MEMBERS_GROUP[@]}"; do
    group=${MEMBERS_GROUP[$name]}
    log::say "process group $group (rank $name) does not end on SIGKILL: it waits in the kernel; see its state with: ps -o pid,stat,wchan:20,args -g $group"
    members::ended "$name" 137
    members::left "$name"
  done
}

# stopping::on_signal NAME: a signal came to the launcher.
stopping::on_signal() {
  if [[ $1 == USR[12] ]]; then # for the trainers: a warning before pre-emption, say
    local name
    for name in "${!MEMBERS_GROUP[@]}"; do
      [[ $name == scheduler ]] || kill -s "$1" "${MEMBERS_GROUP[$name]}" 2>/dev/null || :
    done
  elif [[ $STOPPING_STATE == running ]]; then
    STOPPING_SIGNAL=$1
    log::say "SIG$1: stopping all ranks (a second signal kills them at once)"
    stopping::begin
  elif [[ $1 == TERM && -n $STOPPING_CANCELLED ]]; then
    : # the same scancel, by another way
  elif [[ $STOPPING_STATE == stopping && -z $STOPPING_SIGNAL ]]; then
    STOPPING_SIGNAL=$1
    log::say "SIG$1: the ranks are already stopping (a second signal kills them at once)"
  else
    [[ $STOPPING_STATE == killing ]] || STOPPING_DEADLINE=1 # long ago: no more grace
  fi
}

# stopping::cancelled SECONDS REASON: the engine has told every process to end, us too perhaps, and kills what is
# left after SECONDS: the report is to be written by then.
stopping::cancelled() {
  [[ -z $STOPPING_CANCELLED ]] || return 0 # every rank's agent says so
  STOPPING_CANCELLED=yes
  [[ $STOPPING_STATE != running ]] || stopping::on_signal TERM
  [[ $STOPPING_STATE == stopping ]] || return 0
  local -r grace=$((STOPPING_GRACE + CARRIED_WAY))
  if ((grace > $1 - 3)); then
    ((grace <= $1)) || log::say "$2"
    stopping::_set_deadline "$(($1 > 4 ? $1 - 3 : 1))"
  fi
}
