# shellcheck shell=bash
# What ranks print: lines, and progress bars. A program draws a line again after \r, and only its last state counts.
#
# The callers set LC_ALL=C, because all this is about bytes, and set -f, because word splitting cuts the texts.
# Expansions like ${TEXT##*X} would take quadratic time.

# Bytes that no text and no progress bar has. Without \x01, which bash itself uses.
readonly OUTPUT_BINARY=$'*[\x02-\x06\x0e-\x1a\x1c-\x1f]*'

OUTPUT_LINES=() # the result of output::split
OUTPUT_REST=''

# output::is_redrawn TEXT: whether it has a line that is drawn more than once. \r\n is a plain end of a line, and what
# begins as binary has no lines.
output::is_redrawn() {
  # shellcheck disable=SC2053 # a pattern is meant
  [[ $1 == *$'\r'[!$'\n']* && ${1:0:256} != $OUTPUT_BINARY ]]
}

# output::split TEXT: its whole lines in OUTPUT_LINES, a redrawn line as its last state; what follows the last newline in
# OUTPUT_REST. Among redrawn lines \r\n becomes \n.
output::split() {
  local text=$1 IFS=$'\n'
  local i
  OUTPUT_LINES=() OUTPUT_REST=$1
  [[ $1 == *$'\n'* ]] || return 0
  text=${text#$'\r'} # at the start of a line it means nothing
  text=${text//$'\n\r'/$'\n'}
  [[ $text != $'\n'* ]] || text=$'\r'$text
  while [[ $text == *$'\n\n'* ]]; do # blank lines get \r, because word splitting drops them
    text=${text//$'\n\n'/$'\n\r\n'}
  done
  # shellcheck disable=SC2206 # splitting is the fastest way
  OUTPUT_LINES=($text)
  OUTPUT_REST=''
  if [[ $text != *$'\n' ]]; then
    i=$((${#OUTPUT_LINES[@]} - 1))
    OUTPUT_REST=${OUTPUT_LINES[i]}
    unset "OUTPUT_LINES[i]"
  fi
  if [[ ${1: -1-${#OUTPUT_REST}:1} == $'\r' ]]; then # its start means something again, because its end is to come
    OUTPUT_REST=$'\r'$OUTPUT_REST
  fi
  [[ $text == *$'\r'* ]] || return 0
  for i in "${!OUTPUT_LINES[@]}"; do
    if [[ ${OUTPUT_LINES[i]} == *$'\r'* ]]; then
      output::state "${OUTPUT_LINES[i]}"
      OUTPUT_LINES[i]=$REPLY
    fi
  done
}

# output::state LINE: what its last drawing shows, in REPLY. A drawing of blanks only erases the one before it.
output::state() {
  local IFS=$'\r' line=$1
  local i
  if ((${#line} > 512)) && [[ ${line: -512} == *$'\r'*[!$' \r']* ]]; then
    line=${line: -512}
  fi
  # shellcheck disable=SC2206 # splitting is the fastest way
  local -a states=($line)
  i=$((${#states[@]} - 1))
  while ((i > 0)) && [[ ${states[i]} != *[!\ ]* ]]; do
    i=$((i - 1))
  done
  REPLY=${states[i]-}
}
