# shellcheck shell=bash
# --straggler and --metrics: one process beside the launcher, for all attempts, that reads the ranks' logs.
#
# tools/monitor/main.py names slow ranks on stderr itself, because a terminal that takes nothing must not stop the launcher.
# It gets orders through a pipe, and describes them. The kernel ends it with the launcher. Slow ranks for the report are in
# a file of the run folder, so they are known if the process is killed, too.

MONITOR_FACTOR=''     # --straggler; empty: off
MONITOR_FILE=''       # --metrics; empty: off
MONITOR_PROCESS=''    # its pid
MONITOR_ORDERS=''     # a pipe to it
MONITOR_TOLD=0        # number of failures that it knows
MONITOR_PATIENCE=1000 # hundredths of a second that it may take at the end, with many ranks more; tests set less

# monitor::set FACTOR FILE: what the user wants; the plan checks it.
monitor::set() {
  MONITOR_FACTOR=$1 MONITOR_FILE=$2
}

# monitor::names_slow_ranks: whether there may be slow ranks to report.
monitor::names_slow_ranks() {
  [[ -n $MONITOR_FACTOR && -n $MONITOR_PROCESS ]]
}

# monitor::begin N: attempt N begins; call it after live::open, which may change how messages begin.
monitor::begin() {
  local orders
  [[ -n $MONITOR_FACTOR$MONITOR_FILE ]] || return 0
  if [[ -z $MONITOR_PROCESS ]]; then
    exec {orders}<> <(:)
    set -m # a process group of its own: Ctrl-C must not cut off the last lines
    monitor::_become "$orders" &
    set +m
    MONITOR_PROCESS=$!
    exec {MONITOR_ORDERS}>"/dev/fd/$orders" {orders}>&-
  fi
  monitor::_say attempt "$1"
}

# monitor::_become ORDERS: in the new process. A batch system signals all processes of a job, but the state at its end is
# still to be written, so only the launcher ends the process.
monitor::_become() {
  trap '' INT TERM HUP QUIT USR1 USR2 TTOU XFSZ
  exec "$PYTHON" "$LAUNCH_ROOT/tools/monitor/main.py" "$$" "$PLAN_RUN_DIR" "$LAUNCH_JOB" "$MONITOR_FACTOR" "$MONITOR_FILE" \
    "$LOG_NAME" "$LOG_BEFORE" <"/dev/fd/$1" >/dev/null
}

# monitor::_say WORD...: one order. SIGCONT wakes the process if somebody has stopped it, so that the pipe never fills up.
# SIGPIPE is ignored, so that the launcher survives if it has ended.
monitor::_say() {
  [[ -n $MONITOR_ORDERS ]] || return 0
  kill -CONT "$MONITOR_PROCESS" 2>/dev/null || return 0
  trap '' PIPE
  { printf '%s\n' "$*" >&"$MONITOR_ORDERS"; } 2>/dev/null || :
  trap - PIPE
}

# monitor::failed NAME STATUS: a member has failed. With --keep_going thousands may.
monitor::failed() {
  MONITOR_TOLD=$((MONITOR_TOLD + 1))
  ((MONITOR_TOLD > 1000)) || monitor::_say failed "$1" "$2"
}

# monitor::finish STATUS: the job has ended so: the process looks once more, which takes milliseconds.
monitor::finish() {
  local end
  [[ -n $MONITOR_PROCESS ]] || return 0
  if ! processes::is_child "$MONITOR_PROCESS" "$$"; then
    log::say $"the process of --straggler and --metrics was ended before the job; what it wrote may be old"
  else
    monitor::_say end "$1"
    clock::now
    end=$((REPLY + MONITOR_PATIENCE + ${#PLAN_RANKS[@]} / 10))
    while processes::is_child "$MONITOR_PROCESS" "$$" && ! clock::reached "$end"; do
      clock::sleep 0.01
    done
    if processes::is_child "$MONITOR_PROCESS" "$$"; then
      kill -KILL "$MONITOR_PROCESS" 2>/dev/null || :
      log::say $"the process of --straggler and --metrics does not end, so it was killed; what it wrote may be old"
    fi
  fi
  monitor::close
}

# monitor::close: closes the launcher's end of the pipe.
monitor::close() {
  [[ -z $MONITOR_ORDERS ]] || exec {MONITOR_ORDERS}>&-
  MONITOR_ORDERS=''
}
