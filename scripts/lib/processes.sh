# shellcheck shell=bash
# Processes: start one under a minder, check whether it lives, end it with all its children. For the launcher, the
# agents and the guardian.

PROCESSES_STAT=() # state, parent, process group ... of the process that was read last: proc(5), from the third field on

# processes::start BUS LIFELINE NAME LOG COMMAND...: runs COMMAND (a program or a function) with its output in LOG,
# in a process group of its own. $! is its minder, a subshell that waits for it. They write "start NAME PID", then
# "exit NAME STATUS" to the BUS, and "start PID" to the LIFELINE.
processes::start() {
  set -m # only job control gives it its own process group and does not ignore INT and QUIT
  processes::_mind "$@" </dev/null >/dev/null 2>&1 &
  set +m
}

processes::_mind() {
  local bus=$1 lifeline=$2
  set -m
  processes::_become "$@" &
  set +m
  exec {lifeline}>&-
  bus::await "$!"
  bus::say "$bus" exit "$3" "$REPLY"
}

# Writes the process to both pipes before anything else runs in it. Then it closes them, because a process that outlives
# the launcher would keep them open. Without its LOG, it ends with 78.
processes::_become() {
  local bus=$1 lifeline=$2 log=$4
  bus::say "$lifeline" start "$BASHPID"
  bus::say "$bus" start "$3" "$BASHPID"
  exec {lifeline}>&- {bus}>&- >>"$log" 2>&1 || exit 78
  "${@:5}"
}

# processes::ignore SIGNAL...: for a process substitution. There bash 5.3 ignores INT and QUIT, and its first trap for
# such a signal always ends that, also trap ''.
processes::ignore() {
  trap - "$@"
  trap '' "$@"
}

# processes::signal SIGNAL GROUP: also SIGCONT, because a stopped process handles SIGTERM only when it runs again.
processes::signal() {
  kill -s "$1" -- "-$2" 2>/dev/null || :
  kill -s CONT -- "-$2" 2>/dev/null || :
}

# processes::kill_late GROUP SECONDS: SIGKILL to the group, if a process of it lives after SECONDS.
processes::kill_late() {
  local tick
  for ((tick = 0; tick < $2 * 10; tick++)); do
    kill -0 -- "-$1" 2>/dev/null || return 0
    clock::sleep 0.1
  done
  kill -KILL -- "-$1" 2>/dev/null
}

# processes::group_lives GROUP: whether a process of the group runs. Zombies do not count, because a container's first
# process may never reap them.
processes::group_lives() {
  local file
  kill -0 -- "-$1" 2>/dev/null || return 1
  processes::_runs "$1" "/proc/$1/stat" && return 0 # usually the leader itself, so this saves the search
  for file in /proc/[0-9]*/stat; do
    processes::_runs "$1" "$file" && return 0
  done
  return 1
}

# processes::_runs GROUP FILE: whether the process of FILE is in the group, and runs.
processes::_runs() {
  processes::_stat "$2" && [[ ${PROCESSES_STAT[2]} == "$1" && ${PROCESSES_STAT[0]} != [ZX] ]]
}

# processes::is_child PID PARENT: whether PARENT is still the parent of PID.
processes::is_child() {
  processes::_stat "/proc/$1/stat" && [[ ${PROCESSES_STAT[1]} == "$2" ]]
}

# processes::policy PID: its scheduling policy, in REPLY, as a number: 0 is SCHED_OTHER, 3 SCHED_BATCH.
processes::policy() {
  REPLY=''
  ! processes::_stat "/proc/$1/stat" || REPLY=${PROCESSES_STAT[38]}
}

# processes::_stat FILE: reads /proc/PID/stat into PROCESSES_STAT; fails if the process is gone.
processes::_stat() {
  local line
  { read -r line <"$1"; } 2>/dev/null || return 1
  # shellcheck disable=SC2206 # a letter and numbers; the program's name before them may contain any character
  PROCESSES_STAT=(${line##*) })
}

# processes::marked JOB [RANK]: in REPLY the processes with the job's mark, and the rank's, in their environment. A
# zombie has no environment.
processes::marked() {
  REPLY=$(grep -lszxF -- "LAUNCH_JOB=$1" /proc/[0-9]*/environ) || :
  if [[ -n $REPLY && -n ${2-} ]]; then
    # shellcheck disable=SC2086 # a list of files
    REPLY=$(grep -lszxF -- "RANK_ID=$2" $REPLY) || :
  fi
  REPLY=${REPLY//\/proc\//}
  REPLY=${REPLY//\/environ/}
}

# processes::sweep JOB [RANK]: SIGKILL to all marked processes until none is left. It gives up after a second, because a
# process may wait in the kernel.
processes::sweep() {
  local tries
  for ((tries = 0; tries < 50; tries++)); do
    processes::marked "$@"
    [[ -n $REPLY ]] || return 0
    # shellcheck disable=SC2086 # a list of numbers
    kill -KILL $REPLY 2>/dev/null || :
    clock::sleep 0.02
  done
}
