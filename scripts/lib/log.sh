# shellcheck shell=bash
# Messages: all of them on stderr, each with the name of the script that the user typed.

LOG_NAME=${0##*/}
LOG_QUIET='' # --quiet: only what went wrong

# log::say TEXT...: one line, whatever is in the text. A closed stderr does not end a job.
log::say() {
  local -r text=$*
  printf '%s: %s\n' "$LOG_NAME" "${text//$'\n'/\\n}" >&2 || :
}

# log::note TEXT...: the same for what went right.
log::note() {
  [[ -n $LOG_QUIET ]] || log::say "$@"
}

# log::die STATUS TEXT...: one line, then the script ends.
log::die() {
  local -r status=$1
  shift
  log::say "$@"
  exit "$status"
}

# log::one_line TEXT: TEXT in REPLY, quoted as the shell would need it if it has odd characters.
log::one_line() {
  if [[ $1 == *[!a-zA-Z0-9_./,:=@%+-]* || -z $1 ]]; then
    printf -v REPLY '%q' "$1"
  else
    REPLY=$1
  fi
}
