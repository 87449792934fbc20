# shellcheck shell=bash
# How a job is stopped: SIGTERM to every member, the grace time, SIGKILL to what is left. Also handles the signals that
# order it. Only functions of this file change these variables.

STOPPING_STATE=running # running, stopping, killing
STOPPING_GRACE=10      # seconds between SIGTERM and SIGKILL
STOPPING_DEADLINE=0    # when the state ends: uptime, in hundredths of a second
STOPPING_SIGNAL=''     # the signal that stopped the launcher
STOPPING_CANCELLED=''  # not empty: the engine itself ends the ranks
STOPPING_NOTHING=''    # not empty: --keep_going, a rank that fails stops nothing

stopping::set_grace() {
  STOPPING_GRACE=$1
}

# stopping::keep_going: from now on a rank that fails does not stop the others.
stopping::keep_going() {
  STOPPING_NOTHING=yes
}

# stopping::keeps_going: whether a rank that fails stops nothing.
stopping::keeps_going() {
  [[ -n $STOPPING_NOTHING ]]
}

# stopping::again: resets the state for the next attempt.
stopping::again() {
  STOPPING_STATE=running STOPPING_DEADLINE=0
}

# stopping::soon: from now on the launcher is the cause of every member's end, so none of them counts as a failure.
stopping::soon() {
  STOPPING_STATE=stopping
}

# stopping::begin: SIGTERM to all members; after the grace time SIGKILL to what is left. Where an engine's agents stop
# the ranks, the deadline is CARRIED_WAY later, so that the agents kill first.
stopping::begin() {
  STOPPING_STATE=stopping
  stopping::_set_deadline "$((STOPPING_GRACE + CARRIED_WAY))"
  carried::stop
  stopping::signal_groups TERM
}

# stopping::signal_groups SIGNAL: signals every process group that is left.
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

# stopping::check: if the deadline has passed, goes on to the next step; before it, repeats the order to the engine.
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

# Even SIGKILL does not end a process that waits inside the kernel, for example for a device. If no process is left, but
# nobody reports the end, its minder does not run: a debugger may hold it.
stopping::_give_up() {
  local name group minder
  for name in "${!MEMBERS_GROUP[@]}"; do
    group=${MEMBERS_GROUP[$name]}
    if processes::group_lives "$group"; then
      log::say $"process group $group (rank $name) does not end on SIGKILL: it waits in the kernel; see its state with: ps -o pid,stat,wchan:20,args -g $group"
      members::ended "$name" 137
    else
      minder=${MEMBERS_MINDER[$name]-}
      log::say $"rank $name has ended, but its exit code is unknown: process $minder, which waits for it, does not report it"
      kill -KILL "$minder" 2>/dev/null || :
      members::lost "$name"
    fi
    members::left "$name"
  done
}

# stopping::on_signal NAME: a signal came to the launcher.
stopping::on_signal() {
  if [[ $1 == USR[12] ]]; then # meant for the trainers: for example a warning before pre-emption
    local name
    for name in "${!MEMBERS_GROUP[@]}"; do
      [[ $name == scheduler ]] || carried::only_starts "$name" || kill -s "$1" "${MEMBERS_GROUP[$name]}" 2>/dev/null || :
    done
  elif [[ $STOPPING_STATE == running ]]; then
    STOPPING_SIGNAL=$1
    log::say $"SIG$1: stopping all ranks (a second signal kills them at once)"
    stopping::begin
  elif [[ $1 == TERM && -n $STOPPING_CANCELLED ]]; then
    : # the same scancel: the agents have already reported it
  elif [[ $STOPPING_STATE == stopping && -z $STOPPING_SIGNAL ]]; then
    STOPPING_SIGNAL=$1
    log::say $"SIG$1: the ranks are already stopping (a second signal kills them at once)"
  else
    [[ $STOPPING_STATE == killing ]] || STOPPING_DEADLINE=1 # in the past: the grace time is over
  fi
}

# stopping::cancelled SECONDS REASON: the engine ordered all processes to end, maybe also the launcher. It kills what is
# left after SECONDS, so the launcher must finish its report before that.
stopping::cancelled() {
  [[ -z $STOPPING_CANCELLED ]] || return 0 # every rank's agent reports it
  STOPPING_CANCELLED=yes
  [[ $STOPPING_STATE != running ]] || stopping::on_signal TERM
  [[ $STOPPING_STATE == stopping ]] || return 0
  local -r grace=$((STOPPING_GRACE + CARRIED_WAY))
  if ((grace > $1 - 3)); then
    ((grace <= $1)) || log::say "$2"
    stopping::_set_deadline "$(($1 > 4 ? $1 - 3 : 1))"
  fi
}
