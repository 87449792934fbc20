# shellcheck shell=bash
# How a process hears of others: lines in a pipe, none of which is lost, and the end of a child.
#
# `read -t` can take a byte from the pipe and forget it, when that byte and the end of the time come together. On a busy
# machine one launch in thirty lost a line this way. Therefore every line begins with a dot. Only that dot is ever read
# with a time, and only when the pipe is empty before.

# bus::say FD WORD...: one line, written at once.
bus::say() {
  local -r fd=$1
  local IFS=' ' # it is none when a signal comes in bus::next
  shift
  printf '.%s\n' "$*" >&"$fd"
}

# bus::next FD SECONDS: the next line in REPLY; waits for it so long. Fails with more than 128 if none comes, with 1 at
# the end of the pipe. What a signal's handler says on the pipe ends the wait, too, except when the signal comes just
# before the wait. Signals often come when something has just happened, so the first wait is short.
bus::next() {
  local first='' status=0 seconds=0.1
  [[ $2 != 0.* ]] || seconds=$2
  while bus::empty "$1"; do
    trap : ALRM # the alarm of a read that is over just now would end bash 4.2
    status=0
    IFS= read -r -t "$seconds" -N 1 -u "$1" first || status=$?
    ((status != 0)) || break
    [[ $seconds != "$2" ]] || ! bus::empty "$1" || return "$status"
    seconds=$2
  done
  first=${first-} REPLY='' # bash 4.2 unsets a variable when a signal ends its read
  [[ $first == $'\n' ]] || IFS= read -r -u "$1" REPLY || return
  REPLY=$first$REPLY
  REPLY=${REPLY#$'\n'} REPLY=${REPLY#.}
}

# bus::empty FD: whether there is nothing to read; the end of the pipe counts as something.
bus::empty() {
  ! read -r -t 0 -u "$1"
}

# bus::await PID: the exit status of our last child, in REPLY, whatever signals come to us: scancel and Slurm's time
# limit signal every process of a job. The signals are ignored, not handled: bash can lose the end of a child that
# comes together with a signal that it handles, and would wait forever. The caller must not start another process
# afterwards, because that would ignore them, too.
bus::await() {
  trap '' TERM INT HUP QUIT USR1 USR2
  REPLY=0
  wait "$1" 2>/dev/null || REPLY=$?
}
