# shellcheck shell=bash
# What CANN's own logs, the plogs, say while the job runs: faults that training survives (--watch_plogs), and who waits for
# whom when it hangs.
#
# tools/diagnosis/watch_plogs.py follows the plogs of an attempt and writes its lines to stderr itself, because a terminal
# that takes nothing must not stop the launcher. The kernel ends it with the launcher.

WATCH_ON=''         # not empty: --watch_plogs
WATCH_PROCESS=''    # its pid, while an attempt runs
WATCH_PATIENCE=1000 # hundredths of a second for the report of a job that hangs; tests set less

watch::on() {
  WATCH_ON=yes
}

# watch::open: follows the plogs of the attempt that begins, after live::open, which may change how messages begin.
watch::open() {
  local now
  [[ -n $WATCH_ON ]] || return 0
  printf -v now '%(%s)T' -1
  set -m # a process group of its own: Ctrl-C must not cut off the last lines
  watch::_become "$now" &
  set +m
  WATCH_PROCESS=$!
}

# watch::_become SINCE: in the new process. SIGTERM may end it.
watch::_become() {
  trap '' INT HUP QUIT USR1 USR2 TTOU XFSZ
  supervise::close_pipes
  live::leave
  exec "$PYTHON" "$LAUNCH_ROOT/tools/diagnosis/watch_plogs.py" "$$" "$1" "$PLAN_RUN_DIR" "$PLAN_LOG_DIR" "$LOG_NAME" \
    "$LOG_BEFORE" </dev/null >/dev/null
}

# watch::finish: the attempt has ended: it looks once more, which takes milliseconds. If it cannot, it ends at once.
watch::finish() {
  local tick
  [[ -n $WATCH_PROCESS ]] || return 0
  if processes::is_child "$WATCH_PROCESS" "$$"; then
    processes::signal TERM "$WATCH_PROCESS"
    for ((tick = 0; tick < 100; tick++)); do
      processes::is_child "$WATCH_PROCESS" "$$" || break
      clock::sleep 0.01
    done
    ! processes::is_child "$WATCH_PROCESS" "$$" || kill -KILL "$WATCH_PROCESS" 2>/dev/null || :
  fi
  WATCH_PROCESS=''
}

# watch::report: of a job that hangs on NPUs: the root among the ranks, and their last events.
watch::report() {
  local answers process status end
  [[ -n $PLAN_PLOGS ]] || return 0
  clock::now
  end=$((REPLY + WATCH_PATIENCE))
  exec {answers}< <(
    processes::ignore INT TERM HUP QUIT
    supervise::close_pipes
    live::leave
    exec "$PYTHON" "$LAUNCH_ROOT/tools/diagnosis/plogs_now.py" "$PLAN_RUN_DIR" "$PLAN_LOG_DIR" "$((LIMITS_HANG + 600))" \
      </dev/null 2>/dev/null
  )
  process=$!
  until clock::reached "$end"; do
    status=0
    bus::next "$answers" 0.1 || status=$?
    ((status == 0 || status > 128)) || break # its end
    ((status)) || log::say "$REPLY"
  done
  exec {answers}<&-
  ! processes::is_child "$process" "$$" || kill -KILL "$process" 2>/dev/null || :
}
