# shellcheck shell=bash
# A launcher in a pod of Kubernetes, for run_pod.sh. It may be process 1 of its container, and an operator may move its job.
#
# The kernel gives process 1 only signals for which it has a handler. The launcher's own come with the start of the ranks,
# but a pod may wait for its rank table for half an hour before that. Process 1 inherits orphans. bash reaps them, in 5.2
# only when its `read -t` ends, which is after 10 s at the latest.
#
# tools/launch/pods/pod_watch.py runs beside the launcher and looks at the rank table. What it sees comes on the bus, as
# events "hosts moved STATUS TEXT" and "hosts say TEXT" of attempts.sh.

PODS_ON=''      # not empty: this script is for pods
PODS_STDERR=''  # stderr, from begin to planned: while bash reads the plan, its own is /dev/null
PODS_WATCHER='' # pid

# pods::begin: before the plan: from now on SIGTERM ends the launcher, which has started nothing.
pods::begin() {
  local name
  PODS_ON=yes
  exec {PODS_STDERR}>&2
  for name in INT TERM HUP QUIT; do
    # shellcheck disable=SC2064 # the name is meant to be expanded now
    trap "pods::_leave $name" "$name"
  done
}

pods::_leave() {
  local IFS=$' \t\n' # a handler may run while it is empty
  log::say $"SIG$1: no rank has started yet" 2>&"$PODS_STDERR"
  plan::unlock
  exit "$((128 + $(kill -l "$1")))"
}

# pods::planned: the plan has the operator's variables. The output of the job is in the log of the pod with rank 0; in the
# logs of the others is what failed.
pods::planned() {
  [[ -n $PODS_ON ]] || return 0
  exec {PODS_STDERR}>&-
  PODS_STDERR=2
  unset MS_ROLE MS_SERVER_NUM MS_WORKER_NUM MS_SCHED_HOST MS_SCHED_PORT RANK_TABLE_FILE
  if [[ ${PLAN_RANKS[0]-} != 0 ]] && ! cli::given console; then
    console::show none
    log::only_problems
  fi
}

# pods::open BUS LIFELINE: watches the rank table, if the ranks come from one.
pods::open() {
  [[ -n ${PLAN_ENGINE[watch_table]-} ]] || return 0
  set -m # a process group of its own: Ctrl-C must not end it
  pods::_become "$@" &
  set +m
  PODS_WATCHER=$!
}

pods::_become() {
  local bus=$1 lifeline=$2
  trap '' INT HUP QUIT USR1 USR2
  exec </dev/null >"/dev/fd/$bus" {bus}>&- {lifeline}>&-
  exec "$PYTHON" -S "$LAUNCH_ROOT/tools/launch/pods/pod_watch.py" "$$" "${PLAN_ENGINE[watch_table]}" "${PLAN_ENGINE[watch_digest]}"
}

# pods::close: the job has ended.
pods::close() {
  [[ -n $PODS_WATCHER ]] || return 0
  kill -KILL "$PODS_WATCHER" 2>/dev/null || :
  wait "$PODS_WATCHER" 2>/dev/null || : # without it bash would print how it ended
  PODS_WATCHER=''
}
