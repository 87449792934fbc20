# shellcheck shell=bash
# What ranks print: lines, and progress bars. A program draws a line again after \r, and only its last state counts.
# For the launcher's console and report, and for the agents. Also what an agent does with a log as a file.
#
# The callers of split and state set LC_ALL=C, because all this is about bytes, and set -f, because word splitting cuts
# the texts. Expansions like ${TEXT##*X} would take quadratic time.

readonly OUTPUT_TAIL_LINES=15
readonly OUTPUT_TAIL_BYTES=16384
readonly OUTPUT_TAIL_COLUMNS=400 # bytes of a line

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
  i=${#states[@]} # may be 0
  REPLY=''
  while ((i > 0)) && [[ $REPLY != *[!\ ]* ]]; do
    i=$((i - 1))
    REPLY=${states[i]}
  done
}

# output::cut TEXT BYTES: the first BYTES of TEXT in REPLY, or up to 3 less, so that no character is cut.
output::cut() {
  local -r LC_ALL=C
  local end=$2
  if ((${#1} > end)); then
    while ((end > $2 - 3)) && [[ ${1:end:1} == [$'\x80'-$'\xbf'] ]]; do
      end=$((end - 1))
    done
  fi
  REPLY=${1:0:end}
}

# output::tail FILE: prints its last lines, as short as messages need them: as their last states, without colours. What
# is cut off shows as "...". Bash cannot hold NUL bytes.
output::tail() (
  LC_ALL=C
  set -f
  text='' piece=''
  while IFS= read -r -N "$OUTPUT_TAIL_BYTES" piece || [[ -n $piece ]]; do # bash 4.2 stops at \xff
    text+=$piece
  done < <(tail -c "$OUTPUT_TAIL_BYTES" -- "$1" | tr -d '\0')
  ((${#text} < OUTPUT_TAIL_BYTES)) || text="... $text"
  output::split "$text"
  lines=(${OUTPUT_LINES[@]+"${OUTPUT_LINES[@]}"})
  if [[ -n $OUTPUT_REST ]]; then
    output::state "$OUTPUT_REST"
    lines+=("$REPLY")
  fi
  ((${#lines[@]} <= OUTPUT_TAIL_LINES)) || lines=("${lines[@]: -OUTPUT_TAIL_LINES}")
  for line in ${lines[@]+"${lines[@]}"}; do
    output::_short "$line"
    printf '%s\n' "$REPLY"
  done
)

# output::_short LINE: in REPLY without colours, cut at OUTPUT_TAIL_COLUMNS.
output::_short() {
  local line=${1:0:4*OUTPUT_TAIL_COLUMNS} # enough for a line of many colours
  while [[ $line =~ $'\e['[0-9\;:]*m ]]; do
    line=${line//"${BASH_REMATCH[0]}"/}
  done
  output::cut "$line" "$OUTPUT_TAIL_COLUMNS"
  ((${#REPLY} == ${#line} && ${#1} <= 4 * OUTPUT_TAIL_COLUMNS)) || REPLY+=' ...'
}

# output::link FOLDER RANK LOG: makes the LOG's link in Open MPI's layout below FOLDER; its path in REPLY.
output::link() {
  printf -v REPLY '%s/1/rank.%0*d/stdout' "$1" "${#RANK_SIZE}" "$2" # Open MPI pads the numbers, too
  mkdir -p -- "${REPLY%/*}" && ln -sfn -- "$3" "$REPLY"
}

# output::has_grown LOG: whether it has grown since the last call; the file LOG.seen remembers that. This starts no process.
output::has_grown() {
  [[ ! -f $1 || $1 -nt $1.seen ]] || return 1 # a log that was removed does not show a hang
  : >"$1.seen"
}
