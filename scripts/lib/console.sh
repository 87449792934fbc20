# shellcheck shell=bash
# What the user sees of the ranks while they run: rank 0's log, followed line by line, on stdout.
#
# The ranks write their logs themselves and nothing passes through the launcher. One reader, a process
# of its own so that a terminal that stands still never holds the launcher up, follows the file until
# the launcher closes the pipe to it, then prints the rest and ends.

CONSOLE_CONTROL='' # the launcher's end of the pipe
CONSOLE_PID=''

# console::open LOG: starts to follow LOG, which must exist.
console::open() {
  exec {CONSOLE_CONTROL}<> <(:)
  set -m # a group of its own: Ctrl-C must not cut the last lines off
  console::_follow "$1" &
  set +m
  CONSOLE_PID=$!
}

# console::close: gives the launcher's end up; the reader comes to its end.
console::close() {
  [[ -z $CONSOLE_CONTROL ]] || exec {CONSOLE_CONTROL}>&-
  CONSOLE_CONTROL=''
}

# console::finish: waits until all of the log is on stdout; a signal ends the wait, and the reader.
console::finish() {
  [[ -n $CONSOLE_PID ]] || return 0
  console::close
  trap 'kill -TERM "$CONSOLE_PID" 2>/dev/null' INT TERM HUP QUIT
  wait "$CONSOLE_PID" 2>/dev/null || :
  trap - INT TERM HUP QUIT
}

# The waits grow while nothing comes: to look costs next to nothing, but a job may run for weeks.
console::_follow() {
  local log control partial='' last waits=(0.05 0.1 0.2 0.5) idle=0 ended=0
  local -a lines=()
  local LC_ALL=C # bytes, not characters
  supervise::forget
  # No stderr: a stdout that was closed is no news to the one who closed it.
  exec {log}<"$1" {control}<"/dev/fd/$CONSOLE_CONTROL" {CONSOLE_CONTROL}>&- 2>/dev/null
  while :; do
    while console::_read "$log" && ((${#lines[@]})); do
      last=${lines[${#lines[@]}-1]}
      lines[0]=$partial${lines[0]}
      partial=''
      if [[ $last != *$'\n' ]]; then # the beginning of a line whose end is not written yet
        partial=${lines[${#lines[@]}-1]}
        lines[${#lines[@]}-1]=''
      fi
      printf '%s' "${lines[@]}" || exit 0 # the reader of our stdout has gone
      idle=0
      [[ -z $partial ]] || break
    done
    ((ended == 0)) || break
    read -r -t "${waits[idle]}" -u "$control" _ || { (($? > 128)) || ended=1; }
    ((idle == ${#waits[@]} - 1)) || idle=$((idle + 1))
  done
  [[ -z $partial ]] || printf '%s\n' "$partial"
}

# console::_read FD: what is there now, 1000 lines at most, in `lines`. The last may have no end yet;
# bash 4.2's mapfile would lose such a one.
console::_read() {
  local line
  lines=()
  if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] > 402)); then
    mapfile -n 1000 -u "$1" lines
  elif IFS= read -r line <&"$1"; then
    lines=("$line"$'\n')
  elif [[ -n $line ]]; then
    lines=("$line")
  fi
}
