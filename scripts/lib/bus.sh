# shellcheck shell=bash
# How a process learns of events: lines in a pipe, none of which is lost, and the end of a child.
#
# `read -t` can lose a byte that arrives in the moment of the timeout. On a busy machine one launch in thirty lost a
# line this way. So every line begins with a dot: only the dot is read with a timeout, and only from an empty pipe.
#
# From bash 4.4 to 5.1 `read -t` loses its timeout if a child ends in the moment of the timeout: SIGCHLD restarts the
# wait. So nobody may poll a pipe that stays silent at the end of a child. While a job stops, the guardian writes to the
# bus for this reason.

# bus::say FD WORD...: writes one line in one write.
bus::say() {
  local -r fd=$1
  local IFS=' ' # IFS is empty if a signal's handler runs during bus::next
  shift
  printf '.%s\n' "$*" >&"$fd"
}

# bus::next FD SECONDS: the next line in REPLY; waits at most SECONDS for it. Fails with more than 128 if none comes,
# with 1 at the end of the pipe. A line from a signal's handler ends the wait, too, unless the signal comes just before
# the wait. Signals often come when something has just happened, so the first wait is short.
bus::next() {
  local first='' status=0 seconds=0.1
  [[ $2 != 0.* ]] || seconds=$2
  while bus::empty "$1"; do
    trap : ALRM # in bash 4.2, a late alarm of a read that has just returned would end the shell
    status=0
    IFS= read -r -t "$seconds" -N 1 -u "$1" first || status=$?
    ((status != 0)) || break
    if [[ $seconds == "$2" ]] && bus::empty "$1"; then
      return "$status"
    fi
    seconds=$2
  done
  first=${first-} REPLY='' # bash 4.2 unsets a variable when a signal ends its read
  [[ $first == $'\n' ]] || IFS= read -r -u "$1" REPLY || return
  REPLY=$first$REPLY
  REPLY=${REPLY#$'\n'} REPLY=${REPLY#.}
}

# bus::empty FD: whether the pipe has nothing to read. At its end it is not empty.
bus::empty() {
  ! read -r -t 0 -u "$1"
}

# bus::await PID: waits for our last child; its exit status in REPLY. Signals do not end the wait: scancel and Slurm's
# time limit signal every process of a job. The signals are ignored, not handled: bash can lose the end of a child that
# comes together with a handled signal, and would wait forever. Afterwards the caller must not start another process,
# because that process would ignore them, too.
bus::await() {
  trap '' TERM INT HUP QUIT USR1 USR2
  REPLY=0
  wait "$1" 2>/dev/null || REPLY=$?
}
