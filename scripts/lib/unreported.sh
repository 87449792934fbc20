# shellcheck shell=bash
# Members whose end nobody reports, because what would report it was killed.

# unreported::status NAME: the exit status with which this member has ended unreported, in REPLY; empty: it has not. If a minder
# was killed, its member is killed, too, and counts as killed. A minder that cannot start its member because of a process
# limit ends with 254: nothing was launched, so 78. SIGCONT wakes a minder that somebody has stopped.
unreported::status() {
  local -r minder=${MEMBERS_MINDER[$1]-} group=${MEMBERS_GROUP[$1]-}
  local status=''
  if [[ -z $minder ]]; then
    ! carried::is_gone "$1" || status=137
  elif ! kill -CONT "$minder" 2>/dev/null && bus::empty "$SUPERVISE_BUS"; then
    status=78
    if [[ -n $group ]]; then
      kill -KILL -- "-$group" 2>/dev/null || :
      status=137
    fi
  fi
  REPLY=$status # not before: the clock answers in REPLY, too
}
