# shellcheck shell=bash
# The supervisor: sleeps until a member of the job ends or a signal comes, decides what to do, leaves nothing running.
#
# Every member (see members.sh) has a minder that writes its end to the bus. Signal handlers, too, only write to the
# bus. So one loop (supervise::run), which sleeps in `read`, makes every decision. `wait -n` would be shorter, but it
# loses deaths on every bash from 4.3 to 5.2. A guardian process reads a pipe that only the supervisor holds open: if
# the supervisor is killed, the guardian sees the end of the pipe and ends the process groups.
#
#   bus       (see bus.sh) "start NAME PID", "exit NAME STATUS", "signal NAME". From an engine's ranks (carried.sh):
#             "began NAME PID HOST", a rank that we cannot signal; "was NAME STATUS", a rank that the engine ended; "wrote NAME",
#             a log that we cannot see has grown; "stack NAME PLACE"; "cancelled SECONDS REASON", the engine ends the
#             ranks and kills them after SECONDS; "wake", from the guardian; "hosts WORD REST", see attempts.sh.
#             A line "began", "was" or "exit" may have the words of many ranks, one after the other
#   lifeline  see guardian.sh

SUPERVISE_BUS='' SUPERVISE_LIFELINE='' # file descriptors
SUPERVISE_GUARDIAN=''                  # pid, from open to close
SUPERVISE_WAKES=''                     # not empty: the guardian wakes us once a second, see guardian.sh
SUPERVISE_EVENT=()                     # the bus's last line: event, name, the rest
declare -A SUPERVISE_HOOKS=([member]='' [failed]=: [ended]=: [hang]=: [stops]=:)

# supervise::on EVENT FUNCTION: registers what the launcher does at an event:
#   member   in a member's new process, with its command: runs it
#   failed   with NAME and stop or go: it was the first to fail, or with --keep_going one of them; the others still run
#   ended    a member has ended, and the members that must stop because of it have their signal
#   hang     no rank has written for too long; all of them still run
#   stops    the members stop, whatever the reason; comes often until they have ended
supervise::on() {
  SUPERVISE_HOOKS[$1]=$2
}

# supervise::open JOB: sets up bus, lifeline, guardian and signal handlers. Call it before the first start.
supervise::open() {
  local name
  # A pipe without a name, opened for both directions: opening it never blocks, it never ends for us, and no file of it
  # can be left behind.
  exec {SUPERVISE_BUS}<> <(:)
  exec {SUPERVISE_LIFELINE}<> <(:)
  bus::say "$SUPERVISE_LIFELINE" job "$1"
  for name in INT TERM HUP QUIT USR1 USR2; do # before the guardian: without them a signal would be an internal error
    # shellcheck disable=SC2064 # the name is meant to be expanded now
    trap "bus::say $SUPERVISE_BUS signal $name" "$name"
  done
  set -m # only job control gives it its own process group and does not ignore INT and QUIT
  supervise::_guard &
  SUPERVISE_GUARDIAN=$!
  set +m
}

# The guardian is a file of its own, so that `pkill -9 -f ascend8p` does not hit it together with us. It opens the
# lifeline again, for reading only, because it must not keep that pipe open itself. Signals must not end it at its start.
# Its environment is ours already, so bash need not start again there: see own_shell.sh.
supervise::_guard() {
  trap '' INT TERM HUP QUIT
  LAUNCH_SHELL=$BASHPID/ exec "$BASH" -p -- "$LAUNCH_LIB/guardian.sh" "$STOPPING_GRACE" "$SUPERVISE_BUS" \
    <"/dev/fd/$SUPERVISE_LIFELINE" >/dev/null 2>&1 {SUPERVISE_LIFELINE}>&-
}

# supervise::again: forgets the members of an attempt that has ended, for the next one.
supervise::again() {
  SUPERVISE_WAKES=''
  bus::say "$SUPERVISE_LIFELINE" running
  judging::again
  stopping::again
  limits::again
  members::clear
}

# supervise::start NAME LOG COMMAND...: runs COMMAND (a program or a function) with its output in LOG.
supervise::start() {
  processes::start "$SUPERVISE_BUS" "$SUPERVISE_LIFELINE" "$1" "$2" "${SUPERVISE_HOOKS[member]}" "${@:3}"
  supervise::expect "$1" "$2" "$!"
}

# supervise::expect NAME LOG [MINDER]: adds a member that an engine will start, or that MINDER has started.
supervise::expect() {
  members::add "$@"
  [[ $1 != [0-9]* ]] || limits::watch "$2"
}

# supervise::expect_ranks: adds all ranks of the plan, which an engine will start.
supervise::expect_ranks() {
  members::add_ranks "${PLAN_RANKS[@]}"
  limits::watch_ranks
}

# supervise::close_pipes: for a child that is not a member: closes the supervisor's pipes.
supervise::close_pipes() {
  exec {SUPERVISE_BUS}>&- {SUPERVISE_LIFELINE}>&-
}

# supervise::run: returns when every member has ended and none of its processes lives.
supervise::run() {
  while members::any || [[ -n $JUDGING_SIGNALLED ]]; do
    supervise::_longest_sleep
    if supervise::_next "$REPLY"; then
      supervise::_event "${SUPERVISE_EVENT[@]}"
    else
      supervise::_find_unreported # only when the bus is empty for the whole sleep
    fi
    supervise::_collect
    judging::check_signalled
    stopping::check
    supervise::_limits
  done
}

# supervise::_longest_sleep: how many seconds may pass before the next check, in REPLY.
supervise::_longest_sleep() {
  if [[ $STOPPING_STATE != running || -n $JUDGING_SIGNALLED ]]; then
    [[ $STOPPING_STATE == running ]] || "${SUPERVISE_HOOKS[stops]}"
    REPLY=0.05
    [[ -n $SUPERVISE_WAKES ]] || bus::say "$SUPERVISE_LIFELINE" stopping
    SUPERVISE_WAKES=yes
  elif limits::any || ((${#MEMBERS_GONE_SINCE[@]})); then
    REPLY=1
  else
    REPLY=10
  fi
}

# supervise::_next SECONDS: the next event, its NAME and the rest, in SUPERVISE_EVENT; fails if none comes in time.
supervise::_next() {
  bus::next "$SUPERVISE_BUS" "$1" || return 1
  local line=$REPLY event name
  event=${line%% *} line=${line#"${line%% *}"}
  name=${line# } name=${name%% *} line=${line#" $name"}
  SUPERVISE_EVENT=("$event" "$name" "${line# }")
}

# supervise::wait_until COMMAND...: waits until it is true; fails when a signal, a limit or another host ends the job.
supervise::wait_until() {
  until "$@"; do
    if ! supervise::_next 1; then
      attempts::check
    elif [[ ${SUPERVISE_EVENT[0]} == @(hosts|signal) ]]; then
      supervise::_event "${SUPERVISE_EVENT[@]}"
    fi
    supervise::_limits
    [[ $STOPPING_STATE == running ]] || return 1
  done
}

supervise::_event() {
  case $1 in
    start)
      members::began "$2" "${3%% *}" # an agent's host may follow
      [[ $STOPPING_STATE == running ]] || stopping::signal_groups TERM
      ;;
    began) members::all_began "$2 $3" ;;
    was | exit) judging::have_ended "$1" "$2 $3" ;;
    wrote) limits::log_has_grown ;;
    cancelled) stopping::cancelled "$2" "$3" ;;
    stack) carried::stack "$2" "$3" ;;
    signal) stopping::on_signal "$2" ;;
    hosts) attempts::heard "$2" "$3" ;;
  esac
}

# Forgets the process groups of ended members that have no process left. The kernel may reuse their numbers, so from
# then on neither we nor the guardian may signal them.
supervise::_collect() {
  local name group
  for name in "${!MEMBERS_LEAVING[@]}"; do
    group=${MEMBERS_GROUP[$name]}
    if ! processes::group_lives "$group"; then
      members::left "$name"
      bus::say "$SUPERVISE_LIFELINE" gone "$group"
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

# supervise::ask_stacks: asks the agents where their ranks are, and waits for at most 30 s; answers in CARRIED_STACK.
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

# Ends members whose end nobody reports, and wakes the relay to an engine, which would not report either if somebody has
# stopped it. When the launcher dies, the kernel wakes its children itself.
supervise::_find_unreported() {
  local name
  local -a names=("${MEMBERS_NAMES[@]}")
  attempts::check
  kill -CONT "${MEMBERS_GROUP[${CARRIED_ENGINE:-none}]-}" 2>/dev/null || :
  ((CARRIED_WAY == 0)) || names=("${!MEMBERS_MINDER[@]}") # of the others only their agents know
  for name in "${names[@]}"; do
    [[ -z ${MEMBERS_STATUS[$name]-} ]] || continue
    unreported::status "$name"
    [[ -z $REPLY ]] || judging::ended "$name" "$REPLY"
  done
}

# supervise::close JOB: kills processes that left their group but have the job's mark, then the guardian.
supervise::close() {
  processes::sweep "$1"
  kill -KILL "$SUPERVISE_GUARDIAN" 2>/dev/null || :
  wait "$SUPERVISE_GUARDIAN" 2>/dev/null || :
  SUPERVISE_GUARDIAN=''
}
