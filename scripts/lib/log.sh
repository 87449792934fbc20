# shellcheck shell=bash
# Messages: all go to stderr, each with the name of the script that the user typed.

LOG_NAME=${0##*/}
LOG_QUIET=''  # --quiet: only what went wrong
LOG_LATER=()  # notes for log::tell
LOG_BEFORE='' # what goes before a message

readonly LOG_PLAIN=$'\t -~' # ASCII that only prints, as a range of bytes

# log::say TEXT...: prints one line, whatever the text holds. A closed stderr does not end the job.
log::say() {
  local REPLY
  log::harmless "$LOG_NAME: $*"
  printf '%s%s\n' "$LOG_BEFORE" "$REPLY" >&2 || :
}

# log::shares_terminal [yes]: whether a rank may draw its progress bar on the terminal of our messages. A message then
# takes the place of the bar. The next state of the bar is below it.
log::shares_terminal() {
  LOG_BEFORE=${1:+$'\r\e[K'}
}

# log::note TEXT...: the same, unless --quiet.
log::note() {
  [[ -n $LOG_QUIET ]] || log::say "$@"
}

# log::later TEXT: a note about what the user typed, which log::tell prints once the launch is sure to start.
log::later() {
  LOG_LATER+=("$1")
}

log::tell() {
  local text
  for text in ${LOG_LATER[@]+"${LOG_LATER[@]}"}; do
    log::note "$text"
  done
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

# log::harmless TEXT: TEXT in REPLY, without what can command a terminal: control characters other than the tab, ends of
# lines, changes of the direction of text, and bytes that are not UTF-8. Their bytes become \x1b and the like, the two
# ends of a line \n and \r. All other text stays as it is, in every locale.
log::harmless() {
  REPLY=$1
  if [[ $1 == *[[:cntrl:]]* || $1 == *[![:ascii:]]* ]]; then
    # The file: bash complains when it goes back to a locale that this machine lacks. Without the file: too many are open.
    log::_escape "$1" 2>/dev/null || log::_escape "$1"
  fi
}

log::_escape() {
  local LC_ALL=C # bytes, not characters
  local rest='' at=0 shown size
  local -r more=[$'\x80'-$'\xbf'] # a byte of a character, after its first
  REPLY=''
  while [[ -n $rest || -n ${1:at:1} ]]; do
    if ((${#rest} < 4)); then # pieces, because bash copies all of a text in every step
      rest+=${1:at:200} at=$((at + 200))
    fi
    # shellcheck disable=SC2295 # a range of characters is meant
    shown=${rest%%[!$LOG_PLAIN]*} size=0
    case $rest in
      [$LOG_PLAIN]*) size=${#shown} ;;
      $'\n'*) shown='\n' ;;
      $'\r'*) shown='\r' ;;
      $'\xc2'[$'\x80'-$'\x9f']*) ;;                                     # control characters
      $'\xe2\x80'[$'\xa8'-$'\xae']* | $'\xe2\x81'[$'\xa6'-$'\xa9']*) ;; # ends of lines, directions
      [$'\xc2'-$'\xdf']$more*) size=2 ;;                                # from here on as in RFC 3629
      $'\xe0'[$'\xa0'-$'\xbf']$more* | $'\xed'[$'\x80'-$'\x9f']$more*) size=3 ;;
      [$'\xe1'-$'\xec\xee\xef']$more$more*) size=3 ;;
      $'\xf0'[$'\x90'-$'\xbf']$more$more* | $'\xf4'[$'\x80'-$'\x8f']$more$more*) size=4 ;;
      [$'\xf1'-$'\xf3']$more$more$more*) size=4 ;;
    esac
    if ((size)); then
      shown=${rest:0:size}
    elif [[ -z $shown ]]; then
      printf -v shown %d "'${rest:0:1}"
      printf -v shown '\\x%02x' "$((shown & 255))"
    fi
    REPLY+=$shown rest=${rest:size?size:1}
  done
}

# log::one_line TEXT: TEXT in REPLY, quoted for the shell if it needs that. What could command a terminal becomes numbers.
log::one_line() {
  local -r tilde='\~'
  if [[ -n $1 && $1 != *[!a-zA-Z0-9_./,:=@%+-]* ]]; then
    REPLY=$1
    return 0
  fi
  log::harmless "$1"
  if [[ $REPLY == "$1" ]]; then
    printf -v REPLY '%q' "$1"
  else
    log::_numbers "$1" 2>/dev/null || log::_numbers "$1"
  fi
  if [[ $REPLY != "\$'"* ]]; then # bash 4.2 forgets the tilde, which is a home folder at the start and in an assignment
    REPLY=${REPLY/#\~/$tilde}
    REPLY=${REPLY//=\~/=$tilde}
    REPLY=${REPLY//:\~/:$tilde}
  fi
}

log::_numbers() {
  local LC_ALL=C # here all bytes that are not ASCII become numbers
  printf -v REPLY '%q' "$1"
}

# log::noun NOUN NUMBER: the noun for so many of them, in REPLY.
log::noun() {
  case $1$(($2 == 1)) in
    rank1) REPLY=$"rank" ;;
    rank0) REPLY=$"ranks" ;;
    device1) REPLY=$"device" ;;
    device0) REPLY=$"devices" ;;
  esac
}

# log::count NUMBER NOUN: "1 rank", "4 ranks", in REPLY.
log::count() {
  log::noun "$2" "$1"
  REPLY=$"$1 $REPLY"
}

# log::named NOUN NUMBER...: "rank 3", "devices 4-7", "ranks 0,1,5", in REPLY: each number once, in order. Three or more
# consecutive numbers become a range.
log::named() {
  local number first='' list='' found
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
  log::noun "$1" "$found"
  REPLY+=" ${list#,}"
}
