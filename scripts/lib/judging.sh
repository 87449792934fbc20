# shellcheck shell=bash
# What the end of a member means for the job: it goes on, it is done, or a failure stops it.

JUDGING_FIRST=''  # the member that failed first
JUDGING_SHARED='' # not empty: ranks of other hosts need our scheduler, too
JUDGING_SIGNALLED_UNTIL=0
JUDGING_SIGNALLED='' # a member that a signal ended, until we know whether the signal comes to us, too

# judging::again: forgets the attempt that has ended.
judging::again() {
  JUDGING_FIRST=''
}

# judging::share_scheduler: ranks of other hosts need our scheduler, which ends by itself when the last has left.
judging::share_scheduler() {
  JUDGING_SHARED=yes
}

# judging::have_ended was|exit WORDS: members have ended, maybe thousands at once.
judging::have_ended() {
  local -r event=$1
  members::all_ended "$2"
  # shellcheck disable=SC2086 # a list of numbers
  set -- $REPLY
  if [[ $event == exit && $# -eq 0 ]]; then
    [[ $STOPPING_STATE != running ]] || judging::_judge '' 0
    "${SUPERVISE_HOOKS[ended]}"
  fi
  for (( ; $#; )); do
    if [[ $event == exit ]]; then
      judging::ended "$1" "$2"
    else
      members::ended "$1" "$2"
    fi
    shift 2
  done
}

# judging::ended NAME STATUS: records the end of a member, and decides whether the job goes on.
judging::ended() {
  local name=$1 status=$2
  [[ -z ${MEMBERS_STATUS[$name]-} ]] || return 0 # supervise.sh found it before its minder said so
  if [[ $name == "$CARRIED_ENGINE" ]]; then
    judging::_status_of_engine "$status"
    status=$REPLY
  fi
  members::ended "$name" "$status"
  # Stop what it left in its group, for example workers of a data loader.
  [[ -z ${MEMBERS_GROUP[$name]-} ]] || kill -TERM -- "-${MEMBERS_GROUP[$name]}" 2>/dev/null || :
  if [[ $name == "$CARRIED_ENGINE" ]]; then
    carried::engine_ended
    if ((status == 0)) && [[ -n $REPLY ]]; then
      name=$REPLY status=${MEMBERS_STATUS[$REPLY]}
    fi
  fi
  [[ $STOPPING_STATE != running ]] || judging::_judge "$name" "$status"
  "${SUPERVISE_HOOKS[ended]}"
}

# judging::_status_of_engine STATUS: the status with which the engine counts as ended, in REPLY. Open MPI 5 ends with 0
# although it has lost a host.
judging::_status_of_engine() {
  local -r status=$1
  if ((status == 0 && MEMBERS_RANKS_LEFT > 0)); then
    engine::lost_host "${MEMBERS_LOG[$CARRIED_ENGINE]}"
    [[ -z $REPLY ]] || set -- 255
  fi
  REPLY=$1
}

# judging::_judge NAME STATUS: a member has ended while the job was running normally.
judging::_judge() {
  if [[ $2 == @(129|130|131|143) && -z $JUDGING_SIGNALLED ]]; then # HUP, INT, QUIT, TERM
    clock::now
    JUDGING_SIGNALLED=$1 JUDGING_SIGNALLED_UNTIL=$((REPLY + 30))
  elif (($2 != 0)); then
    [[ -z $JUDGING_SIGNALLED ]] || judging::_fail "$JUDGING_SIGNALLED"
    [[ $STOPPING_STATE != running ]] || judging::_fail "$1"
  elif [[ -z $JUDGING_SIGNALLED ]] && judging::_work_is_done; then
    stopping::begin # the members that are left have nothing to do
  fi
}

# judging::check_signalled: batch systems, systemd and container engines end a job by signalling all its processes,
# and may hit a rank before us. If the signal then comes to us, no rank has failed, and it does not count as a second
# signal. If it does not come in time, the rank has failed.
judging::check_signalled() {
  [[ -n $JUDGING_SIGNALLED ]] || return 0
  if [[ $STOPPING_STATE != running ]]; then
    JUDGING_SIGNALLED=''
  elif clock::reached "$JUDGING_SIGNALLED_UNTIL"; then
    judging::_fail "$JUDGING_SIGNALLED"
    "${SUPERVISE_HOOKS[ended]}"
  fi
}

# judging::_fail NAME: handles the first failure, with --keep_going each of them.
judging::_fail() {
  local then=stop
  JUDGING_SIGNALLED=''
  ! judging::_goes_on_without "$1" || then=go
  JUDGING_FIRST=${JUDGING_FIRST:-$1}
  members::failed "$1"
  "${SUPERVISE_HOOKS[failed]}" "$1" "$then"
  [[ $then == go ]] || stopping::begin
}

# judging::_goes_on_without NAME: whether NAME has failed and the job goes on. The scheduler may fail because a rank has.
judging::_goes_on_without() {
  stopping::keeps_going && ! judging::_work_is_done \
    && [[ $1 == [0-9]* || ($1 == scheduler && -n $JUDGING_FIRST) ]]
}

# Whether all ranks have ended. Then nobody needs the engine any more, nor MindSpore's scheduler. But if ranks of other
# hosts share the scheduler, it must have ended, too; see judging::share_scheduler.
judging::_work_is_done() {
  ((MEMBERS_RANKS_LEFT == 0)) \
    && [[ -z $JUDGING_SHARED || -z ${MEMBERS_LOG[scheduler]-} || -n ${MEMBERS_STATUS[scheduler]-} ]]
}
