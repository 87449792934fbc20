# shellcheck shell=bash
# Sleeps until a member of the job ends or a signal comes, decides what that means, and leaves nothing running.
#
# Every member (see members.sh) has a minder that writes its end to the bus. Signal handlers only write to the bus,
# too, so every decision is made in one loop (supervise::run), which sleeps in `read`. `wait -n` would be shorter and
# loses deaths on every bash from 4.3 to 5.2. A guardian, one more process, reads a pipe that only the supervisor
# holds open: when the supervisor is killed it sees the end of that pipe and ends the groups.
#
#   bus       (see bus.sh) "start NAME PID", "exit NAME STATUS", "signal NAME". From an engine's ranks, see
#             carried.sh: "began NAME", of one that we cannot signal; "was NAME STATUS", of one that the engine ended;
#             "wrote NAME", when a log that we do not see has grown; "stack NAME PLACE"; "cancelled SECONDS REASON",
#             when the engine ends the ranks and kills them after SECONDS
#   lifeline  "job NAME", "start PGID", "gone PGID"

SUPERVISE_BUS='' SUPERVISE_LIFELINE='' # file descriptors
SUPERVISE_GUARDIAN=''                  # pid, from open to close
SUPERVISE_FIRST=''                     # the member that failed first
SUPERVISE_SHARED=''                    # not empty: ranks of other hosts need our scheduler, too
SUPERVISE_SIGNALLED=''                 # one that a signal ended, until it is clear whether we are to end, too
SUPERVISE_SIGNALLED_UNTIL=0
SUPERVISE_EVENT=() # the bus's last line: event, name, the rest

# What the launcher does beside, see supervise::on.
declare -A SUPERVISE_HOOKS=([member]='' [failed]=: [ended]=: [hang]=:)

# supervise::on EVENT FUNCTION: what the launcher does beside
#   member   becomes a new member: gets its command
#   failed   NAME was the first to fail; the others still run
#   ended    a member has ended, and who has to stop because of that was told
#   hang     no rank has written for too long; all of them still run
supervise::on() {
  SUPERVISE_HOOKS[$1]=$2
}

# supervise::open JOB: bus, lifeline, guardian and signal handlers. Call it before the first start.
supervise::open() {
  local name
  # A pipe without a name: opened for both directions it never blocks and never ends for us, and
  # there is no file to be left behind or to be in the way.
  exec {SUPERVISE_BUS}<> <(:)
  exec {SUPERVISE_LIFELINE}<> <(:)
  printf 'job %s\n' "$1" >&"$SUPERVISE_LIFELINE"
  set -m # own process group, and INT and QUIT not ignored: both only by job control
  supervise::_guard &
  SUPERVISE_GUARDIAN=$!
  set +m
  for name in INT TERM HUP QUIT USR1 USR2; do
    # shellcheck disable=SC2064 # the name is meant to be expanded now
    trap "bus::say $SUPERVISE_BUS signal $name" "$name"
  done
}

# A file of its own, so that `pkill -9 -f ascend8p` does not hit the guardian together with us. Its
# input is the lifeline opened again, for reading only: it must not keep that pipe alive itself.
supervise::_guard() {
  exec {SUPERVISE_BUS}>&-
  exec "$BASH" "$LAUNCH_LIB/guardian.sh" "$STOPPING_GRACE" \
    <"/dev/fd/$SUPERVISE_LIFELINE" >/dev/null 2>&1 {SUPERVISE_LIFELINE}>&-
}

# supervise::again: forgets the members of an attempt that has ended, for the next one.
supervise::again() {
  SUPERVISE_FIRST=''
  stopping::again
  limits::again
  members::clear
}

# supervise::start NAME LOG COMMAND...: runs COMMAND (a program or a function) with its output in LOG.
supervise::start() {
  processes::start "$SUPERVISE_BUS" "$SUPERVISE_LIFELINE" "$1" "$2" "${SUPERVISE_HOOKS[member]}" "${@:3}"
  supervise::expect "$1" "$2" "$!"
}

# supervise::expect NAME LOG [MINDER]: a member that an engine will start, or that has been started.
supervise::expect() {
  members::add "$@"
  [[ $1 != [0-9]* ]] || limits::watch "$2"
}

# supervise::share_scheduler: ranks of other hosts need our scheduler; it ends by itself when the last has left.
supervise::share_scheduler() {
  SUPERVISE_SHARED=yes
}

# supervise::close_pipes: for a child that is no member: lets go of our pipes.
supervise::close_pipes() {
  exec {SUPERVISE_BUS}>&- {SUPERVISE_LIFELINE}>&-
}

# supervise::run: returns when every member has ended and nothing of it lives.
supervise::run() {
  while members::any || [[ -n $SUPERVISE_SIGNALLED ]]; do
    supervise::_longest_sleep
    if supervise::_next "$REPLY"; then
      supervise::_event "${SUPERVISE_EVENT[@]}"
    else
      supervise::_find_unreported # now and then, and only when the bus is empty
    fi
    supervise::_collect
    supervise::_judge_signalled
    stopping::check
    supervise::_limits
  done
}

# supervise::_longest_sleep: for how long nothing has to be looked after, in REPLY.
supervise::_longest_sleep() {
  if [[ $STOPPING_STATE != running || -n $SUPERVISE_SIGNALLED ]]; then
    REPLY=0.05
  elif limits::any || ((${#MEMBERS_GONE_SINCE[@]})); then
    REPLY=1
  else
    REPLY=10
  fi
}

# supervise::_next SECONDS: the next event, its NAME and the rest in SUPERVISE_EVENT; fails when none comes
# in time.
supervise::_next() {
  bus::next "$SUPERVISE_BUS" "$1" || return 1
  local line=$REPLY event name
  event=${line%% *} line=${line#"${line%% *}"}
  name=${line# } name=${name%% *} line=${line#" $name"}
  SUPERVISE_EVENT=("$event" "$name" "${line# }")
}

# supervise::pause SECONDS: waits; fails at once when a signal tells us to stop, or the time is up.
supervise::pause() {
  clock::now
  local -r end=$((REPLY + $1 * 100))
  until clock::reached "$end"; do
    if supervise::_next 1 && [[ ${SUPERVISE_EVENT[0]} == signal && ${SUPERVISE_EVENT[1]} != USR[12] ]]; then
      supervise::_event "${SUPERVISE_EVENT[@]}"
    fi
    supervise::_limits
    [[ $STOPPING_STATE == running ]] || return 1
  done
}

supervise::_event() {
  case $1 in
    start)
      members::began "$2" "$3"
      [[ $STOPPING_STATE == running ]] || stopping::signal_groups TERM
      ;;
    began) members::began "$2" ;;
    was) members::ended "$2" "$3" ;;
    exit) supervise::_ended "$2" "$3" ;;
    wrote) limits::log_has_grown ;;
    cancelled) stopping::cancelled "$2" "$3" ;;
    stack) carried::stack "$2" "$3" ;;
    signal) stopping::on_signal "$2" ;;
  esac
}

# supervise::_ended NAME STATUS: the rank, or what ended with it, decides how the job goes on.
supervise::_ended() {
  local name=$1 status=$2
  [[ -z ${MEMBERS_STATUS[$name]-} ]] || return 0 # found ended before its minder told
  members::ended "$name" "$status"
  # What it left in its group, workers of a data loader say, ends with it.
  [[ -z ${MEMBERS_GROUP[$name]-} ]] || kill -TERM -- "-${MEMBERS_GROUP[$name]}" 2>/dev/null || :
  if [[ $name == "$CARRIED_ENGINE" ]]; then
    carried::engine_ended
    if ((status == 0)) && [[ -n $REPLY ]]; then
      name=$REPLY status=${MEMBERS_STATUS[$REPLY]}
    fi
  fi
  if [[ $STOPPING_STATE == running ]]; then
    supervise::_judge "$name" "$status"
  fi
  "${SUPERVISE_HOOKS[ended]}"
}

# supervise::_judge NAME STATUS: a member has ended while all was well.
supervise::_judge() {
  if [[ $2 == @(129|130|131|143) && -z $SUPERVISE_SIGNALLED ]]; then # HUP, INT, QUIT, TERM
    clock::now
    SUPERVISE_SIGNALLED=$1 SUPERVISE_SIGNALLED_UNTIL=$((REPLY + 30))
  elif (($2 != 0)); then
    supervise::_fail "${SUPERVISE_SIGNALLED:-$1}"
  elif [[ -z $SUPERVISE_SIGNALLED ]] && supervise::_work_is_done; then
    stopping::begin # what is left now has nothing to do
  fi
}

# supervise::_judge_signalled: who ends a job by its processes, all of them, as batch systems, systemd and container
# engines do, may hit a rank before us: then no rank has failed, and the signal that comes to us is no second one.
supervise::_judge_signalled() {
  [[ -n $SUPERVISE_SIGNALLED ]] || return 0
  if [[ $STOPPING_STATE != running ]]; then
    SUPERVISE_SIGNALLED=''
  elif clock::reached "$SUPERVISE_SIGNALLED_UNTIL"; then
    supervise::_fail "$SUPERVISE_SIGNALLED"
    "${SUPERVISE_HOOKS[ended]}"
  fi
}

# supervise::_fail NAME: the first failure.
supervise::_fail() {
  SUPERVISE_FIRST=$1 SUPERVISE_SIGNALLED=''
  "${SUPERVISE_HOOKS[failed]}" "$1"
  stopping::begin
}

# Whether all members have ended, or all but MindSpore's scheduler and the engine, which nobody needs any more. A
# scheduler that ranks of other hosts share ends by itself when the last of them has left.
supervise::_work_is_done() {
  ((MEMBERS_RANKS_LEFT == 0)) \
    && [[ -z $SUPERVISE_SHARED || -z ${MEMBERS_LOG[scheduler]-} || -n ${MEMBERS_STATUS[scheduler]-} ]]
}

# Forgets the groups of ended members of which nothing lives: the kernel may give their numbers to
# others, so from then on neither we nor the guardian may signal them.
supervise::_collect() {
  local name group
  for name in "${!MEMBERS_LEAVING[@]}"; do
    group=${MEMBERS_GROUP[$name]}
    if ! processes::group_lives "$group"; then
      members::left "$name"
      printf 'gone %d\n' "$group" >&"$SUPERVISE_LIFELINE"
    fi
  done
}

supervise::_limits() {
  if [[ $STOPPING_STATE == running ]] && limits::check; then
    stopping::soon
    [[ $LIMITS_REACHED != hang ]] || "${SUPERVISE_HOOKS[hang]}"
    stopping::begin
  fi
}

# supervise::ask_stacks: where the engine's ranks are, in CARRIED_STACK; waits for at most half a minute.
supervise::ask_stacks() {
  carried::ask_stacks || return 0
  clock::now
  local -r end=$((REPLY + 3000))
  until carried::all_told || [[ -n $STOPPING_SIGNAL ]] || clock::reached "$end"; do
    if supervise::_next 1; then
      supervise::_event "${SUPERVISE_EVENT[@]}"
    fi
  done
}

# Members whose end nobody tells. A minder that was killed writes nothing: its member is ended and counts as killed.
# One that could not even start its member, for lack of processes, ends with 254: then nothing was launched, so 78.
supervise::_find_unreported() {
  local name minder
  for name in "${MEMBERS_NAMES[@]}"; do
    [[ -z ${MEMBERS_STATUS[$name]-} ]] || continue
    minder=${MEMBERS_MINDER[$name]-}
    if [[ -z $minder ]]; then
      if carried::is_gone "$name"; then
        supervise::_ended "$name" 137
      fi
    elif ! kill -0 "$minder" 2>/dev/null && bus::empty "$SUPERVISE_BUS"; then
      if [[ -z ${MEMBERS_GROUP[$name]-} ]]; then
        supervise::_ended "$name" 78
      else
        kill -KILL -- "-${MEMBERS_GROUP[$name]}" 2>/dev/null || :
        supervise::_ended "$name" 137
      fi
    fi
  done
}

# supervise::close JOB: ends what escaped from its group but kept the job's mark, then the guardian.
supervise::close() {
  processes::sweep "$1"
  kill -KILL "$SUPERVISE_GUARDIAN" 2>/dev/null || :
  wait "$SUPERVISE_GUARDIAN" 2>/dev/null || :
  SUPERVISE_GUARDIAN=''
}
