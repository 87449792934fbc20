# shellcheck shell=bash
# The attempts of a job whose hosts have a launcher each: with --max_restarts the launchers agree on them.
#
# tools/attempts/main.py runs beside each launcher, and the host of rank 0 decides. An attempt begins when all hosts are
# ready for it. The first failure on any host ends the attempt on all of them. What the hosts decide comes on the bus, as
# events "hosts begin NUMBER", "hosts again NUMBER STATUS HOST TEXT", "hosts end NUMBER STATUS HOST TEXT", "hosts say TEXT".
# On one host, and without --max_restarts, nothing of this is used.

ATTEMPTS_ORDERS=''  # a pipe to the process beside us; empty: there are no other launchers
ATTEMPTS_PROCESS='' # its pid
ATTEMPTS_NUMBER=0   # the attempt that runs, or that we are ready for
ATTEMPTS_BEGUN=''   # the attempt that all hosts may begin
ATTEMPTS_TOLD=''    # not empty: the other hosts know how this attempt has ended here
ATTEMPTS_VERDICT='' # how it has ended on all hosts: again or end
ATTEMPTS_STATUS=0   # the exit code that the verdict gives this host
ATTEMPTS_HOST=''    # the host whose failure, signal or limit has ended the attempt here, too

# attempts::open BUS LIFELINE: starts the process beside us, if the plan has facts for it.
attempts::open() {
  local orders
  [[ -n ${PLAN_ENGINE[attempts]-} ]] || return 0
  exec {orders}<> <(:)
  set -m # a process group of its own: Ctrl-C must not end it
  attempts::_become "$orders" "$@" &
  set +m
  ATTEMPTS_PROCESS=$!
  exec {ATTEMPTS_ORDERS}>"/dev/fd/$orders" {orders}>&-
  attempts::_say "${PLAN_ENGINE[attempts]}"
}

attempts::_become() {
  local orders=$1 bus=$2 lifeline=$3
  trap '' INT TERM HUP QUIT USR1 USR2
  exec <"/dev/fd/$orders" >"/dev/fd/$bus" {orders}>&- {bus}>&- {lifeline}>&-
  exec "$PYTHON" -S "$LAUNCH_ROOT/tools/attempts/main.py"
}

# attempts::_say WORD...: one line to the process. SIGPIPE is ignored, so that the launcher survives if it has ended.
attempts::_say() {
  [[ -n $ATTEMPTS_ORDERS ]] || return 0
  trap '' PIPE
  { printf '%s\n' "$*" >&"$ATTEMPTS_ORDERS"; } 2>/dev/null || :
  trap - PIPE
}

# attempts::is_open: whether other hosts have launchers that do not know yet how this attempt ends.
attempts::is_open() {
  [[ -n $ATTEMPTS_ORDERS && -z $ATTEMPTS_TOLD$ATTEMPTS_VERDICT ]]
}

# attempts::again NUMBER: this attempt is next.
attempts::again() {
  ATTEMPTS_NUMBER=$1 ATTEMPTS_TOLD='' ATTEMPTS_HOST='' ATTEMPTS_VERDICT='' ATTEMPTS_STATUS=0
}

# attempts::ready: this host can begin the attempt; attempts::may_begin says whether all can.
attempts::ready() {
  attempts::_say ready "$ATTEMPTS_NUMBER"
}

attempts::may_begin() {
  [[ -z $ATTEMPTS_ORDERS || $ATTEMPTS_BEGUN == "$ATTEMPTS_NUMBER" ]]
}

# attempts::done: all ranks of this host have ended with 0; attempts::is_judged says whether those of all hosts have, or
# one has failed.
attempts::done() {
  attempts::_say "done" "$ATTEMPTS_NUMBER"
}

attempts::is_judged() {
  [[ -n $ATTEMPTS_VERDICT ]]
}

# attempts::failed STATUS TEXT: the first failure on this host.
attempts::failed() {
  ATTEMPTS_TOLD=yes
  attempts::_say failed "$ATTEMPTS_NUMBER" "$@"
}

# attempts::stopped STATUS TEXT: a signal or a limit ends the job on this host, so it ends on all.
attempts::stopped() {
  ATTEMPTS_TOLD=yes
  attempts::_say stop "$@"
}

# attempts::heard WORD REST: an event of the process.
attempts::heard() {
  local rest=$2 number=${2%% *} status host text
  case $1 in
    say) log::say "$rest" ;;
    moved) attempts::_moved "$number" "${rest#* }" ;;
    begin) ATTEMPTS_BEGUN=$number ;;
    again | end)
      rest=${rest#* }
      status=${rest%% *} rest=${rest#* }
      host=${rest%% *} text=${rest#"$host"}
      attempts::_judged "$1" "$number" "$status" "$host" "${text# }"
      ;;
  esac
}

# attempts::_judged again|end NUMBER STATUS HOST TEXT: the attempt, or the job, has ended on all hosts, because of HOST. If
# this host failed by itself it has its own message, and its own exit code.
attempts::_judged() {
  [[ $1 == end || $2 == "$ATTEMPTS_NUMBER" ]] || return 0
  [[ $ATTEMPTS_VERDICT != end ]] || return 0
  ATTEMPTS_VERDICT=$1
  [[ -z $ATTEMPTS_TOLD ]] || return 0
  ATTEMPTS_STATUS=$3
  (($3)) || return 0
  ATTEMPTS_HOST=$4
  if ((MEMBERS_RANKS_LEFT)); then
    log::say $"$4: $5; stopping the ranks of this host"
  else
    log::say "$4: $5"
  fi
  [[ $STOPPING_STATE != running ]] || stopping::begin
}

# attempts::_moved STATUS TEXT: an operator moves the job, so it ends on all hosts.
attempts::_moved() {
  [[ $ATTEMPTS_VERDICT != end ]] || return 0
  ! attempts::is_open || attempts::stopped "$1" "$2"
  ATTEMPTS_TOLD='' # the verdict is none of another host, but holds in the same way
  attempts::_judged end "$ATTEMPTS_NUMBER" "$1" $"rank table" "$2"
  ATTEMPTS_TOLD=yes
}

# attempts::check: ends the job on this host if the process beside us was killed. SIGCONT wakes it if somebody has stopped it.
attempts::check() {
  [[ -n $ATTEMPTS_ORDERS && $ATTEMPTS_VERDICT != end ]] || return 0
  kill -CONT "$ATTEMPTS_PROCESS" 2>/dev/null \
    || attempts::_judged end "$ATTEMPTS_NUMBER" 255 "$LOG_NAME" $"the process that speaks with the other hosts was killed"
}

# attempts::close: the job has ended on this host. The process sends what is left to say, for at most 3 s.
attempts::close() {
  local tick
  [[ -n $ATTEMPTS_ORDERS ]] || return 0
  attempts::_say leave
  exec {ATTEMPTS_ORDERS}>&-
  ATTEMPTS_ORDERS=''
  for ((tick = 0; tick < 60; tick++)); do
    kill -CONT "$ATTEMPTS_PROCESS" 2>/dev/null || return 0
    clock::sleep 0.05
  done
  kill -KILL "$ATTEMPTS_PROCESS" 2>/dev/null || :
}
