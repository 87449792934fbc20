# shellcheck shell=bash
# The live screen of --console table: tools/live/beside.py draws it on stdout while an attempt runs.
#
# The screen has the whole terminal. So what goes to stderr meanwhile goes into a file of the run. The screen shows its last
# lines, and writes all of it to stderr when it ends. Keys reach the screen because it stays in the launcher's process group.

LIVE_STDERR=''   # a copy of the launcher's stderr, while that is the file
LIVE_MESSAGES='' # the file
LIVE_UNREAD=''   # a descriptor of it: what is behind its place has not been on stderr; the screen's process shares the place

# live::open: starts to show the attempt that begins: by the screen, or as console.sh does it.
live::open() {
  [[ $CONSOLE_SHOWS != table ]] || live::_is_possible || console::show 0
  if [[ $CONSOLE_SHOWS != table ]]; then
    console::open
    return
  fi
  LIVE_MESSAGES=$PLAN_RUN_DIR/messages.txt
  if { : >>"$LIVE_MESSAGES"; } 2>/dev/null; then
    [[ -n $LIVE_UNREAD ]] || exec {LIVE_UNREAD}<"$LIVE_MESSAGES"
    console::run live::_become
    exec {LIVE_STDERR}>&2 2>>"$LIVE_MESSAGES"
  else # a full disk: messages come between the frames
    console::run live::_become
  fi
}

# Fails, and says why, if there can be no screen.
live::_is_possible() {
  if [[ ! -t 1 || ${TERM-dumb} == dumb ]]; then
    log::note $"--console table needs a terminal; this shows rank 0's log instead"
  elif ! "$PYTHON" -c 'import rich, yaml' </dev/null >/dev/null 2>&1; then
    log::note $"--console table needs the Python packages rich and PyYAML; this shows rank 0's log instead"
  else
    return 0
  fi
  return 1
}

live::_become() {
  local control
  trap - EXIT
  trap '' INT QUIT TTOU XFSZ
  supervise::close_pipes
  exec {control}<"/dev/fd/$CONSOLE_CONTROL"
  console::close
  exec "$PYTHON" "$LAUNCH_ROOT/tools/live/beside.py" "$control" "$PLAN_RUN_DIR" "$LIVE_MESSAGES" "$LIVE_UNREAD" </dev/null
}

# live::leave: for a child: closes what only the launcher needs to show the job.
live::leave() {
  console::close
  [[ -z $LIVE_STDERR ]] || exec {LIVE_STDERR}>&-
  [[ -z $LIVE_UNREAD ]] || exec {LIVE_UNREAD}<&-
  LIVE_STDERR='' LIVE_UNREAD=''
}

# live::own_stderr: stderr is stderr again.
live::own_stderr() {
  [[ -z $LIVE_STDERR ]] || exec 2>&"$LIVE_STDERR" {LIVE_STDERR}>&-
  LIVE_STDERR=''
}

# live::finish: waits until all is shown. If the screen was killed, the messages in its file come now.
live::finish() {
  console::finish
  [[ -n $LIVE_UNREAD ]] || return 0
  live::own_stderr
  ((REPLY == 0)) || printf '\e[?25h\e[?1049l' # the cursor, and the usual screen
  live::rest
}

# live::rest: writes to stderr what came into the file since then, from the process of --straggler say.
live::rest() {
  [[ -z $LIVE_UNREAD ]] || cat <&"$LIVE_UNREAD" >&2 || :
}
