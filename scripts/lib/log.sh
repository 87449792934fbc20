# shellcheck shell=bash
# Messages: all go to stderr, each with the name of the script that the user typed.

LOG_NAME=${0##*/}
LOG_QUIET='' # --quiet: only what went wrong

# log::say TEXT...: prints one line, also if the text has line breaks. A closed stderr does not end the job.
log::say() {
  local -r text=$*
  printf '%s: %s\n' "$LOG_NAME" "${text//$'\n'/\\n}" >&2 || :
}

# log::note TEXT...: the same, unless --quiet.
log::note() {
  [[ -n $LOG_QUIET ]] || log::say "$@"
}

# log::only_problems: silences log::note.
log::only_problems() {
  LOG_QUIET=1
}

# log::die STATUS TEXT...: prints one line and ends the script.
log::die() {
  local -r status=$1
  shift
  log::say "$@"
  exit "$status"
}

# log::one_line TEXT: TEXT in REPLY, quoted for the shell if it needs that.
log::one_line() {
  if [[ $1 == *[!a-zA-Z0-9_./,:=@%+-]* || -z $1 ]]; then
    printf -v REPLY '%q' "$1"
  else
    REPLY=$1
  fi
}

# log::count NUMBER NOUN: "1 rank", "4 ranks", in REPLY.
log::count() {
  REPLY="$1 $2"
  (($1 == 1)) || REPLY+=s
}

# log::named NOUN NUMBER...: "rank 3", "devices 4-7", "ranks 0,1,5", in REPLY: each number once, in order. Three or more
# consecutive numbers become a range.
log::named() {
  local noun=$1 number first='' list='' found
  local -a there=()
  for number in "${@:2}"; do
    there[number]=1
  done
  found=${#there[@]}
  for number in "${!there[@]}"; do
    first=${first:-$number}
    if [[ -z ${there[number+1]-} ]]; then # the end of a range
      ((number - first == 1)) && list+=",$first,$number"
      ((number - first > 1)) && list+=",$first-$number"
      ((number > first)) || list+=",$number"
      first=''
    fi
  done
  ((found == 1)) || noun+=s
  REPLY="$noun ${list#,}"
}
