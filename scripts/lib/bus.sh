# shellcheck shell=bash
# How a process hears of others: lines in a pipe, of which none gets lost, and the end of a child.
#
# A read that has a time can take a byte from the pipe and forget it, when that byte and the end of the time
# come together; on a busy machine a launch in thirty lost a line so. Therefore each line begins with a dot
# that nobody misses, no more than that is ever read with a time, and nothing is when something is there already.

# bus::say FD WORD...: one line, written at once.
bus::say() {
  local -r fd=$1
  local IFS=' ' # it is none when a signal comes in bus::next
  shift
  printf '.%s\n' "$*" >&"$fd"
}

# bus::next FD SECONDS: the next line in REPLY; waits for it so long. Fails with more than 128 when none
# comes, with 1 at the end of the pipe. What a signal's handler says on the pipe ends the waiting, too; not if
# the signal comes when we are about to wait, and signals do come when something has just happened: so the
# first wait is short.
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

# bus::empty FD: whether nothing is there; the end of the pipe is something.
bus::empty() {
  ! read -r -t 0 -u "$1"
}

# bus::await PID: the exit status of our last child, in REPLY, whatever signals come to us: scancel and
# Slurm's limit of time signal every process of a job. Ignored, not handled: bash can lose the end of a
# child that comes together with a signal that it handles, and would wait for ever. Who calls this starts
# nothing more, which would ignore them, too.
bus::await() {
  trap '' TERM INT HUP QUIT USR1 USR2
  REPLY=0
  wait "$1" 2>/dev/null || REPLY=$?
}
