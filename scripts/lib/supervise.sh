# shellcheck shell=bash
# Starts processes, sleeps until one ends or a signal comes, and leaves none of them behind.
#
# Each process (a "member": a rank, or MindSpore's scheduler) runs in a process group of its own under
# a minder, a subshell that waits for it and writes its end to the bus. Signal handlers only write to
# the bus too, so every decision is made in one loop (supervise::run), which sleeps in `read`. `wait
# -n` would be shorter and loses deaths on every bash from 4.3 to 5.2. A guardian, one more process,
# reads a pipe that only the supervisor holds open: when the supervisor is killed it sees the end of
# that pipe and ends the groups.
#
# Under an engine (mpirun, srun, msrun) the ranks are members, too, but the engine's, the "carrier", is
# the process that we start and stop; the ranks' agents (rank_agent.sh) tell us about them.
#
#   bus       (see bus.sh) "start NAME PID", "exit NAME STATUS", "signal NAME"; of a rank that we cannot
#             signal ourselves: "began NAME"; of one that its carrier ended: "was NAME STATUS"; "wrote NAME",
#             when a log that we do not see has grown; "cancelled", when Slurm does the ending; "stack NAME
#             PLACE", the answer to supervise::ask_stacks
#   lifeline  "start PGID", "gone PGID"

SUPERVISE_BUS='' SUPERVISE_LIFELINE='' # file descriptors
SUPERVISE_GUARDIAN=''                  # pid, from open to close
SUPERVISE_GRACE=10                     # seconds between SIGTERM and SIGKILL
SUPERVISE_STATE=running                # running, stopping, killing
SUPERVISE_DEADLINE=0                   # of the state, in hundredths of a second of uptime
SUPERVISE_TOLD=0                       # uptime, in hundredths of a second, when the carrier was last told to stop
SUPERVISE_SHARED=''                    # not empty: ranks of other hosts need our scheduler, too
SUPERVISE_SIGNAL=''                    # the signal that told us to stop
SUPERVISE_CANCELLED=''                 # not empty: Slurm ends the ranks on its own account
SUPERVISE_LIMIT=''                     # timeout or hang: the limit of time that was reached
SUPERVISE_FIRST=''                     # the member that failed first
SUPERVISE_DOUBTED=''                   # one that SIGTERM or the like ended, until it is clear whether we are to end, too
SUPERVISE_DOUBT_ENDS=0                 # uptime, in hundredths of a second
SUPERVISE_TIMEOUT=0                    # seconds that the job may run; 0: no limit
SUPERVISE_HANG=0                       # seconds that all ranks' logs may stand still; 0: no limit
SUPERVISE_TIMEOUT_AT=0                 # uptime, in hundredths of a second
SUPERVISE_LOOK_AT=0                    # uptime of the next look at the logs
SUPERVISE_STILL_SINCE=0                # uptime since when they look as they do
SUPERVISE_LOOK=''                      # how they look: sizes and times

SUPERVISE_EVENT=()   # the bus's last line: event, name, the rest
SUPERVISE_CARRIER='' # the member that starts the ranks, where we do not

SUPERVISE_NAMES=()             # members in the order of their start
declare -A SUPERVISE_MINDER=() # name -> pid of its minder
declare -A SUPERVISE_GROUP=()  # name -> process group, until nothing of it lives
declare -A SUPERVISE_LOG=()    # name -> its log
declare -A SUPERVISE_STATUS=() # name -> exit status, once it ended
declare -A SUPERVISE_LOST=()   # name -> 1, if the carrier ended without a word about it
declare -A SUPERVISE_STACK=()  # name -> where it is, from its agent
declare -A SUPERVISE_BEGAN=()  # name -> uptime of its start, in hundredths of a second
declare -A SUPERVISE_ENDED=()  # name -> uptime of its end

# supervise::open JOB: bus, lifeline, guardian and signal handlers. Call it before the first start.
supervise::open() {
  # A pipe without a name: opened for both directions it never blocks and never ends for us, and
  # there is no file to be left behind or to be in the way.
  exec {SUPERVISE_BUS}<> <(:)
  exec {SUPERVISE_LIFELINE}<> <(:)
  set -m # own process group, and INT and QUIT not ignored: both only by job control
  supervise::_guard "$1" &
  SUPERVISE_GUARDIAN=$!
  set +m
  local name
  for name in INT TERM HUP QUIT USR1 USR2; do
    # shellcheck disable=SC2064 # the name is meant to be expanded now
    trap "bus::say $SUPERVISE_BUS signal $name" "$name"
  done
  if ((SUPERVISE_TIMEOUT)); then
    supervise::_now
    SUPERVISE_TIMEOUT_AT=$((REPLY + SUPERVISE_TIMEOUT * 100))
  fi
}

# supervise::again: forgets the members of an attempt that has ended, for the next one.
supervise::again() {
  SUPERVISE_STATE=running SUPERVISE_FIRST='' SUPERVISE_DEADLINE=0 SUPERVISE_LOOK='' SUPERVISE_LOOK_AT=0
  SUPERVISE_NAMES=()
  SUPERVISE_MINDER=() SUPERVISE_GROUP=() SUPERVISE_LOG=() SUPERVISE_STATUS=() SUPERVISE_LOST=() SUPERVISE_BEGAN=() SUPERVISE_ENDED=()
}

# A file of its own, so that `pkill -9 -f ascend8p` does not hit the guardian together with us. Its
# input is the lifeline opened again, for reading only: it must not keep that pipe alive itself.
supervise::_guard() {
  exec {SUPERVISE_BUS}>&-
  exec "$BASH" "$LAUNCH_LIB/guardian.sh" "$1" "$SUPERVISE_GRACE" \
    <"/dev/fd/$SUPERVISE_LIFELINE" >/dev/null 2>&1 {SUPERVISE_LIFELINE}>&-
}

# supervise::start NAME LOG COMMAND...: runs COMMAND (a program or a function) with its output in LOG.
supervise::start() {
  SUPERVISE_NAMES+=("$1")
  SUPERVISE_LOG[$1]=$2
  set -m
  supervise::_mind "$@" </dev/null >/dev/null 2>&1 &
  set +m
  SUPERVISE_MINDER[$1]=$!
}

# supervise::expect NAME LOG: a member that the carrier will start.
supervise::expect() {
  SUPERVISE_NAMES+=("$1")
  SUPERVISE_LOG[$1]=$2
}

supervise::_mind() {
  set -m
  supervise::_become "$@" &
  set +m
  exec {SUPERVISE_LIFELINE}>&-
  bus::await "$!"
  bus::say "$SUPERVISE_BUS" exit "$1" "$REPLY"
}

# Known to the guardian and to us before anything else runs; then without our pipes, which a member
# that lives longer than us would keep open.
supervise::_become() {
  local -r name=$1 log=$2
  shift 2
  printf 'start %d\n' "$BASHPID" >&"$SUPERVISE_LIFELINE"
  bus::say "$SUPERVISE_BUS" start "$name" "$BASHPID"
  exec {SUPERVISE_LIFELINE}>&- {SUPERVISE_BUS}>&- >>"$log" 2>&1
  console::close
  "$@"
}

# supervise::forget: for a child that is no member: lets go of our pipes.
supervise::forget() {
  exec {SUPERVISE_BUS}>&- {SUPERVISE_LIFELINE}>&-
}

# supervise::run: returns when every member has ended and nothing of it lives.
supervise::run() {
  while supervise::_pending; do
    if supervise::_next "$REPLY"; then
      supervise::_event "${SUPERVISE_EVENT[@]}"
    else
      supervise::_audit # now and then, and only when the bus is empty
    fi
    supervise::_collect
    supervise::_doubt
    supervise::_deadline
    supervise::_limits
  done
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
  local end
  supervise::_set_deadline "$1"
  end=$SUPERVISE_DEADLINE SUPERVISE_DEADLINE=0
  while supervise::_now && ((REPLY < end)); do
    if supervise::_next 1 && [[ ${SUPERVISE_EVENT[0]} == signal && ${SUPERVISE_EVENT[1]} != USR[12] ]]; then
      supervise::_event "${SUPERVISE_EVENT[@]}"
    fi
    supervise::_limits
    [[ $SUPERVISE_STATE == running ]] || return 1
  done
}

# supervise::_pending: whether there is something to wait for, and for how long to sleep in REPLY.
supervise::_pending() {
  REPLY=10
  ((SUPERVISE_TIMEOUT_AT == 0 && SUPERVISE_HANG == 0)) || REPLY=1
  ((${#SUPERVISE_ENDED[@]} <= ${#SUPERVISE_STATUS[@]})) || REPLY=1 # the audit looks at one again
  [[ $SUPERVISE_STATE == running && -z $SUPERVISE_DOUBTED ]] || REPLY=0.05
  [[ -z $SUPERVISE_DOUBTED ]] || return 0
  ((${#SUPERVISE_STATUS[@]} < ${#SUPERVISE_NAMES[@]} || ${#SUPERVISE_GROUP[@]} > 0))
}

supervise::_event() {
  case $1 in
    start)
      SUPERVISE_GROUP[$2]=$3
      supervise::_now
      SUPERVISE_BEGAN[$2]=$REPLY
      [[ $SUPERVISE_STATE == running ]] || supervise::_signal_groups TERM
      ;;
    began)
      supervise::_now
      SUPERVISE_BEGAN[$2]=$REPLY
      ;;
    was)
      supervise::_now
      SUPERVISE_STATUS[$2]=$3 SUPERVISE_ENDED[$2]=$REPLY
      ;;
    exit) supervise::_ended "$2" "$3" ;;
    wrote) SUPERVISE_LOOK='' ;;
    cancelled) supervise::_cancelled ;;
    stack) SUPERVISE_STACK[$2]=$3 ;;
    signal) supervise::_signal "$2" ;;
  esac
}

supervise::_ended() {
  [[ -z ${SUPERVISE_STATUS[$1]-} ]] || return 0 # the audit was first
  SUPERVISE_STATUS[$1]=$2
  supervise::_now
  SUPERVISE_ENDED[$1]=$REPLY
  # What it left in its group, workers of a data loader say, ends with it.
  [[ -z ${SUPERVISE_GROUP[$1]-} ]] || kill -TERM -- "-${SUPERVISE_GROUP[$1]}" 2>/dev/null || :
  if [[ $1 == "$SUPERVISE_CARRIER" ]]; then
    supervise::_lose
    (($2 != 0)) || set -- "${REPLY:-$1}" "${SUPERVISE_STATUS[${REPLY:-$1}]}"
  fi
  [[ $SUPERVISE_STATE == running ]] || return 0
  if [[ $2 == @(129|130|131|143) && -z $SUPERVISE_DOUBTED ]]; then # HUP, INT, QUIT, TERM
    SUPERVISE_DOUBTED=$1
    supervise::_now
    SUPERVISE_DOUBT_ENDS=$((REPLY + 30))
  elif (($2 != 0)); then
    supervise::_fail "${SUPERVISE_DOUBTED:-$1}"
  elif [[ -z $SUPERVISE_DOUBTED ]] && supervise::_work_is_done; then
    supervise::stop # what is left now has nothing to do
  fi
}

# supervise::_fail NAME: the first failure.
supervise::_fail() {
  SUPERVISE_FIRST=$1 SUPERVISE_DOUBTED=''
  report::first_failure "$1"
  supervise::stop
  ((LAUNCH_RESTARTS)) || report::call_diagnosis
}

# Who ends a job by its processes, all of them, as batch systems, systemd and container engines do, may hit a
# rank before us: then no rank has failed, and the signal that comes to us is no second one.
supervise::_doubt() {
  [[ -n $SUPERVISE_DOUBTED ]] || return 0
  if [[ $SUPERVISE_STATE != running ]]; then
    SUPERVISE_DOUBTED=''
  elif supervise::_now && ((REPLY >= SUPERVISE_DOUBT_ENDS)); then
    supervise::_fail "$SUPERVISE_DOUBTED"
  fi
}

# supervise::_lose: the carrier has ended; members that it has not told the end of are lost, and count
# as failed with 255. The first of them in REPLY.
supervise::_lose() {
  local name
  REPLY=''
  for name in "${SUPERVISE_NAMES[@]}"; do
    if [[ -z ${SUPERVISE_STATUS[$name]-} && -z ${SUPERVISE_MINDER[$name]-} && -z ${SUPERVISE_GROUP[$name]-} ]]; then
      SUPERVISE_STATUS[$name]=255
      SUPERVISE_LOST[$name]=1
      SUPERVISE_ENDED[$name]=${SUPERVISE_ENDED[$SUPERVISE_CARRIER]}
      REPLY=${REPLY:-$name}
    fi
  done
}

# Whether all members have ended, or all but MindSpore's scheduler and the carrier, which nobody needs
# any more. A scheduler that ranks of other hosts share ends by itself when the last of them has left.
supervise::_work_is_done() {
  local name
  for name in "${SUPERVISE_NAMES[@]}"; do
    [[ $name != scheduler || -z $SUPERVISE_SHARED || -n ${SUPERVISE_STATUS[$name]-} ]] || return 1
    [[ -n ${SUPERVISE_STATUS[$name]-} || $name == @(scheduler|"${SUPERVISE_CARRIER:-scheduler}") ]] || return 1
  done
}

# Forgets the groups of ended members of which nothing lives: the kernel may give their numbers to
# others, so from then on neither we nor the guardian may signal them.
supervise::_collect() {
  local name group
  for name in "${!SUPERVISE_GROUP[@]}"; do
    group=${SUPERVISE_GROUP[$name]}
    if [[ -n ${SUPERVISE_STATUS[$name]-} ]] && ! supervise::_alive "$group"; then
      unset "SUPERVISE_GROUP[$name]"
      printf 'gone %d\n' "$group" >&"$SUPERVISE_LIFELINE"
    fi
  done
}

# supervise::_alive GROUP: whether a member of the group runs. Zombies do not count: a container's
# first process may never collect them.
supervise::_alive() {
  kill -0 -- "-$1" 2>/dev/null || return 1
  ! supervise::_runs "$1" "/proc/$1/stat" || return 0 # most often
  local file
  for file in /proc/[0-9]*/stat; do
    ! supervise::_runs "$1" "$file" || return 0
  done
  return 1
}

# supervise::_runs GROUP FILE: whether the process of FILE, a /proc/N/stat, is of the group, and runs.
supervise::_runs() {
  local line
  local -a field
  { read -r line <"$2"; } 2>/dev/null || return 1
  # shellcheck disable=SC2206 # a letter and numbers: state, parent, group ... after a name that may hold anything
  field=(${line##*) })
  [[ ${field[2]} == "$1" && ${field[0]} != [ZX] ]]
}

supervise::_signal() {
  if [[ $1 == USR[12] ]]; then # for the trainers: a warning before pre-emption, say
    local name
    for name in "${!SUPERVISE_GROUP[@]}"; do
      [[ $name == scheduler ]] || kill -s "$1" "${SUPERVISE_GROUP[$name]}" 2>/dev/null || :
    done
  elif [[ $SUPERVISE_STATE == running ]]; then
    SUPERVISE_SIGNAL=$1
    log::say "SIG$1: stopping all ranks (once more: kill them at once)"
    supervise::stop
  elif [[ $1 == TERM && -n $SUPERVISE_CANCELLED ]]; then
    : # the same scancel, by another way
  elif [[ $SUPERVISE_STATE == stopping && -z $SUPERVISE_SIGNAL ]]; then
    SUPERVISE_SIGNAL=$1
    log::say "SIG$1: the ranks are being stopped already (once more: kill them at once)"
  else
    [[ $SUPERVISE_STATE == killing ]] || SUPERVISE_DEADLINE=1 # long ago: no more grace
  fi
}

# Slurm has told every process to end, us too perhaps, and kills what is left after a time of its own: the
# report is to be written by then.
supervise::_cancelled() {
  [[ -z $SUPERVISE_CANCELLED ]] || return 0 # every rank's agent says so
  SUPERVISE_CANCELLED=yes
  [[ $SUPERVISE_STATE != running ]] || supervise::_signal TERM
  [[ $SUPERVISE_STATE == stopping ]] || return 0
  engine::patience
  if ((SUPERVISE_GRACE > REPLY - 3)); then
    ((SUPERVISE_GRACE <= REPLY)) || log::say "Slurm kills what is left after $REPLY s, its KillWait; that is all the grace time there is"
    supervise::_set_deadline "$((REPLY > 4 ? REPLY - 3 : 1))"
  fi
}

# supervise::stop: SIGTERM to all, and SIGKILL to what is left after the grace time.
supervise::stop() {
  SUPERVISE_STATE=stopping
  supervise::_set_deadline "$SUPERVISE_GRACE"
  SUPERVISE_TOLD=$((SUPERVISE_DEADLINE - SUPERVISE_GRACE * 100))
  supervise::_signal_groups TERM
}

# A stopped process takes SIGTERM only once it runs again.
supervise::_signal_groups() {
  local name
  for name in "${!SUPERVISE_GROUP[@]}"; do
    kill -s "$1" -- "-${SUPERVISE_GROUP[$name]}" 2>/dev/null || :
    kill -s CONT -- "-${SUPERVISE_GROUP[$name]}" 2>/dev/null || :
  done
}

supervise::_deadline() {
  ((SUPERVISE_DEADLINE)) || return 0
  supervise::_now
  if ((REPLY < SUPERVISE_DEADLINE)); then
    supervise::_insist
  elif [[ $SUPERVISE_STATE == killing ]]; then
    supervise::_give_up
  else
    SUPERVISE_STATE=killing
    supervise::_set_deadline 5
    supervise::_signal_groups KILL
  fi
}

# supervise::_insist: tells the carrier once a second. An order has a long way, through the carrier, the engine and
# the ranks' agents; it may come before an agent can take it, and bash has lost one now and then. Who has it
# already does not mind.
supervise::_insist() {
  [[ $SUPERVISE_STATE == stopping && -n ${SUPERVISE_GROUP[${SUPERVISE_CARRIER:-none}]-} ]] || return 0
  ((REPLY >= SUPERVISE_TOLD + 100)) && declare -F engine::order >/dev/null || return 0
  SUPERVISE_TOLD=$REPLY
  kill -s TERM -- "-${SUPERVISE_GROUP[$SUPERVISE_CARRIER]}" 2>/dev/null || :
}

# What the user limited: the time of the whole job, and how long all ranks' logs may stand still.
supervise::_limits() {
  [[ $SUPERVISE_STATE == running ]] || return 0
  ((SUPERVISE_TIMEOUT_AT || SUPERVISE_HANG)) || return 0
  supervise::_now
  if ((SUPERVISE_TIMEOUT_AT && REPLY >= SUPERVISE_TIMEOUT_AT)); then
    SUPERVISE_LIMIT=timeout
    log::say "the job has run for $SUPERVISE_TIMEOUT s, its --timeout: stopping all ranks"
    supervise::stop
  elif ((SUPERVISE_HANG && REPLY >= SUPERVISE_LOOK_AT)) && supervise::_stand_still "$REPLY"; then
    SUPERVISE_LIMIT=hang SUPERVISE_STATE=stopping # how a rank ends from now on is our doing
    log::say "no rank has written to its log for $SUPERVISE_HANG s, the --hang_timeout: saving the stacks of all ranks, then stopping them"
    report::stacks
    supervise::stop
  fi
}

# supervise::ask_stacks: where the carrier's ranks are, in SUPERVISE_STACK; at most half a minute.
supervise::ask_stacks() {
  local name end missing=1
  kill -s ABRT "${SUPERVISE_GROUP[$SUPERVISE_CARRIER]}" 2>/dev/null || return 0
  supervise::_now
  end=$((REPLY + 3000))
  while ((missing)) && supervise::_now && ((REPLY < end)) && [[ -z $SUPERVISE_SIGNAL ]]; do
    ! supervise::_next 1 || supervise::_event "${SUPERVISE_EVENT[@]}"
    missing=0
    for name in "${SUPERVISE_NAMES[@]}"; do
      [[ -n ${SUPERVISE_MINDER[$name]-}${SUPERVISE_STATUS[$name]-}${SUPERVISE_STACK[$name]-} ]] || missing=1
    done
  done
}

# supervise::_stand_still NOW: whether the ranks' logs have stood still for too long. Sizes and times are
# compared for being the same only: a clock that steps does not matter.
supervise::_stand_still() {
  local name look
  local -a logs=()
  for name in "${!SUPERVISE_LOG[@]}"; do
    [[ $name == scheduler || $name == "$SUPERVISE_CARRIER" ]] || logs+=("${SUPERVISE_LOG[$name]}")
  done
  ((${#logs[@]})) || return 1
  look=$(stat -c '%s %y' -- "${logs[@]}" 2>&1) || :
  if [[ $look != "$SUPERVISE_LOOK" ]]; then
    SUPERVISE_LOOK=$look SUPERVISE_STILL_SINCE=$1
  fi
  local -r end=$((SUPERVISE_STILL_SINCE + SUPERVISE_HANG * 100)) step=$((SUPERVISE_HANG * 10 < 100 ? 100 : SUPERVISE_HANG * 10))
  SUPERVISE_LOOK_AT=$(($1 + step < end ? $1 + step : end))
  (($1 >= end))
}

# Not even SIGKILL ends a process that waits inside the kernel, for a device say.
supervise::_give_up() {
  local name
  for name in "${!SUPERVISE_GROUP[@]}"; do
    log::say "process group ${SUPERVISE_GROUP[$name]} (rank $name) does not end on SIGKILL: it waits in the kernel; see its state with: ps -o pid,stat,wchan:20,args -g ${SUPERVISE_GROUP[$name]}"
    SUPERVISE_STATUS[$name]=${SUPERVISE_STATUS[$name]:-137}
  done
  SUPERVISE_GROUP=()
}

# A minder that was killed writes nothing: its member is ended and counts as killed. One that could not
# even start its member, for want of processes, ends with 254: then nothing was launched, so 78.
supervise::_audit() {
  local name status
  for name in "${SUPERVISE_NAMES[@]}"; do
    if [[ -z ${SUPERVISE_MINDER[$name]-} ]]; then
      supervise::_audit_carried "$name"
      continue
    fi
    [[ -z ${SUPERVISE_STATUS[$name]-} ]] || continue
    if ! kill -0 "${SUPERVISE_MINDER[$name]}" 2>/dev/null && bus::empty "$SUPERVISE_BUS"; then
      status=137
      if [[ -z ${SUPERVISE_GROUP[$name]-} ]]; then
        status=78
      else
        kill -KILL -- "-${SUPERVISE_GROUP[$name]}" 2>/dev/null || :
      fi
      supervise::_ended "$name" "$status"
    fi
  done
}

# A carrier's member that has ended, while all that could tell was killed. What lives tells within moments.
supervise::_audit_carried() {
  local -r group=${SUPERVISE_GROUP[$1]-}
  [[ -n $group && -z ${SUPERVISE_STATUS[$1]-} ]] || return 0
  ! supervise::_alive "$group" || return 0
  supervise::_now
  : "${SUPERVISE_ENDED[$1]:=$REPLY}"
  ((REPLY < SUPERVISE_ENDED[$1] + 200)) || supervise::_ended "$1" 137
}

# supervise::close JOB: ends what escaped from its group but kept the job's mark, then the guardian.
supervise::close() {
  supervise::sweep "$1"
  kill -KILL "$SUPERVISE_GUARDIAN" 2>/dev/null || :
  wait "$SUPERVISE_GUARDIAN" 2>/dev/null || :
  SUPERVISE_GUARDIAN=''
}

# supervise::sweep JOB: SIGKILL to every process that has the job's mark in its environment, until there
# is none; one that waits in the kernel is left after a second.
supervise::sweep() {
  local file pid found tries
  for ((tries = 0; tries < 50; tries++)); do
    found=''
    while IFS= read -r file; do
      pid=${file#/proc/}
      found+=" ${pid%%/*}"
    done < <(grep -lszxF -- "LAUNCH_JOB=$1" /proc/[0-9]*/environ)
    [[ -n $found ]] || return 0
    # shellcheck disable=SC2086 # a list of numbers
    kill -KILL $found 2>/dev/null || :
    read -r -t 0.02 _ <> <(:) || : # a sleep that starts no program
  done
}

supervise::_set_deadline() {
  supervise::_now
  SUPERVISE_DEADLINE=$((REPLY + $1 * 100))
}

# supervise::_now: hundredths of a second since the machine started, in REPLY. Clocks step, this does
# not, and reading it starts no process.
supervise::_now() {
  local uptime _
  read -r uptime _ </proc/uptime
  REPLY=${uptime%.*}${uptime#*.}
}
