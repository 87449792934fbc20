# shellcheck shell=bash
# The output of the ranks while they run: rank 0's log, or all logs, followed on stdout. live.sh has the table of ranks.
#
# The ranks write their logs themselves; nothing passes through the launcher. A reader follows the files until the
# launcher closes the pipe to it, then prints the rest and ends. It is a process of its own, so that a blocked terminal
# never blocks the launcher. On a terminal, if nothing comes for CONSOLE_STATUS_AFTER, stderr shows since when.
#
# A terminal gets one log byte by byte, because progress bars and colours are meant for it. A pipe or a file gets the
# same, except for progress bars: a program draws a line again after \r, and only the last state of such a line counts.
# The state comes at the line's end, and every CONSOLE_STATE_EVERY while the line has none. Of several logs, the reader
# shows whole lines and the same states; it cuts what is longer than CONSOLE_LONGEST.

CONSOLE_SHOWS=0    # 0: the first rank's log; all: every rank's, with its number; table; none
CONSOLE_CONTROL='' # the launcher's end of the pipe
CONSOLE_PID=''

CONSOLE_STATUS_AFTER=3000                                       # hundredths of a second without output; tests set less
CONSOLE_STATE_EVERY=1000                                        # hundredths of a second
CONSOLE_STATE_EVERY_TERMINAL=200                                # the same for several logs on a terminal
readonly CONSOLE_BLOCK=$((BASH_VERSINFO[0] < 5 ? 2048 : 16384)) # bytes; bash 4 replaces text in quadratic time
readonly CONSOLE_LONGEST=16384                                  # bytes of an unfinished line of several logs
readonly CONSOLE_COLOURS=(36 33 32 35 34 96 93 92 95 94 31 91)  # of the ranks' numbers, in turn

console::show() {
  CONSOLE_SHOWS=$1
}

# console::open: starts to follow the logs of this attempt.
console::open() {
  [[ $CONSOLE_SHOWS != none ]] || return 0
  local -a ranks=("${PLAN_RANKS[0]}") logs=()
  local rank
  [[ $CONSOLE_SHOWS == 0 ]] || ! system::can_open "$((${#PLAN_RANKS[@]} + 64))" $"--console all shows rank ${ranks[0]} only" || ranks=("${PLAN_RANKS[@]}")
  for rank in "${ranks[@]}"; do
    logs+=("$PLAN_LOG_DIR/rank_$rank.log")
    { : >>"$PLAN_LOG_DIR/rank_$rank.log"; } 2>/dev/null || : # if that fails, the rank says so
  done
  set -m # a process group of its own: Ctrl-C must not cut off the last lines
  console::run console::_follow "${logs[@]}"
  set +m
  [[ $CONSOLE_SHOWS != 0 || ! -t 1 || ! -t 2 || ${TERM-dumb} == dumb ]] || log::shares_terminal yes
}

# console::run COMMAND...: starts the reader, a process that ends with the pipe CONSOLE_CONTROL.
console::run() {
  exec {CONSOLE_CONTROL}<> <(:)
  "$@" &
  CONSOLE_PID=$!
}

# console::close: closes the launcher's end of the pipe, so that the reader ends.
console::close() {
  [[ -z $CONSOLE_CONTROL ]] || exec {CONSOLE_CONTROL}>&-
  CONSOLE_CONTROL=''
}

# console::finish: waits until the logs are on stdout up to their end; a signal ends this. The reader's status is in REPLY.
console::finish() {
  local status=0
  [[ -n $CONSOLE_PID ]] || return 0
  console::close
  kill -CONT "$CONSOLE_PID" 2>/dev/null || : # wakes a reader that somebody stopped
  wait "$CONSOLE_PID" 2>/dev/null || status=$?
  ((status <= 128)) || kill -TERM "$CONSOLE_PID" 2>/dev/null || :
  CONSOLE_PID=''
  log::shares_terminal
  REPLY=$status
}

# console::_follow LOG...: the reader. Its waits grow while nothing comes, because a job may run for weeks.
console::_follow() {
  local control i fd waits=(0.05 0.1 0.2 0.5 1 1 1 1 1 1 2) idle=0 ended=0 last_output=0 status='' terminal=''
  local way=states half='' # half: the end of stdout is an unfinished line
  # Of each log: what goes before a line; the unfinished line, as far as it is not on stdout; since when a state waits,
  # and the state that was shown
  local -a fds=() prefixes=() rests=() since=() told=()
  local LC_ALL=C # bytes, not characters
  set -f         # see output::split
  supervise::close_pipes
  trap - EXIT
  trap '' TTOU XFSZ # after `stty tostop`, the terminal would stop us; past `ulimit -f`, a write must fail
  [[ ! -t 2 || $TERM == dumb ]] || exec {terminal}>&2
  # No stderr from here on: a message about a closed stdout would help nobody.
  exec {control}<"/dev/fd/$CONSOLE_CONTROL" {CONSOLE_CONTROL}>&- 2>/dev/null
  for i; do
    exec {fd}<"$i" || exec {fd}</dev/null # a log that is not there: the others are shown
    fds+=("$fd") && rests+=('') && since+=('') && told+=('')
  done
  console::_prefixes
  console::_way
  clock::now && last_output=$REPLY
  while :; do
    for i in "${!fds[@]}"; do
      console::_read "$i"
    done
    ((ended == 0)) || break
    console::_show_states
    console::_status
    read -r -t "${waits[idle]}" -u "$control" _ || (($? > 128)) || ended=1 # not a timeout: the end of the pipe
    ((idle == ${#waits[@]} - 1)) || idle=$((idle + 1))
  done
  console::_end
}

# Sets what to print before a line: nothing for a single log, else the rank, in colour on a terminal.
console::_prefixes() {
  local i
  for i in "${!fds[@]}"; do
    prefixes[i]=''
    ((${#fds[@]} > 1)) || continue
    prefixes[i]="[${PLAN_RANKS[i]}] "
    [[ ! -t 1 || -n ${NO_COLOR-} || ${TERM-dumb} == dumb ]] \
      || prefixes[i]=$'\e['"${CONSOLE_COLOURS[i%${#CONSOLE_COLOURS[@]}]}m[${PLAN_RANKS[i]}]"$'\e[0m '
  done
}

# Sets how to show logs: bytes as they come, bytes without old states, or whole lines.
console::_way() {
  if ((${#fds[@]} > 1)); then
    way=lines
    [[ ! -t 1 ]] || CONSOLE_STATE_EVERY=$CONSOLE_STATE_EVERY_TERMINAL
  elif [[ -t 1 ]]; then
    way=bytes
  fi
}

# console::_read I: shows what is new in log I. It reads blocks, because bash takes seven times as long line by line.
# Bash leaves out NUL bytes; bash 4.2 also leaves out \xff, and what follows a NUL in a block.
console::_read() {
  local chunk='' more=1
  while ((more)); do
    IFS= read -r -N "$CONSOLE_BLOCK" -u "${fds[$1]}" chunk || more=0
    [[ -n $chunk ]] || continue
    idle=0
    if [[ -n $terminal ]]; then
      clock::now && last_output=$REPLY
    fi
    console::_show "$1" "$chunk"
  done
}

# console::_show I TEXT: the next TEXT of log I.
console::_show() {
  local text=${rests[$1]}$2
  if [[ $way == bytes ]]; then
    console::_print %s "$text"
  elif output::is_redrawn "$text"; then
    console::_show_redrawn "$1" "$text"
  elif [[ $way == lines ]]; then
    console::_show_lines "$1" "$text"
  elif [[ $text == *$'\r' ]]; then # half of a line's end, or a state's end
    rests[$1]=$'\r' since[$1]=''
    console::_print %s "${text%$'\r'}"
  else
    rests[$1]='' since[$1]=''
    console::_print %s "$text"
  fi
}

# console::_show_lines I TEXT: the next TEXT of log I, one of several, with what waited before it.
console::_show_lines() {
  local whole next=$'\n'${prefixes[$1]}
  rests[$1]=$2 since[$1]=''
  if [[ $2 == *$'\n'* ]]; then
    whole=${2%$'\n'*}
    rests[$1]=${2:${#whole}+1}
    console::_print '%s\n' "${prefixes[$1]}${whole//$'\n'/$next}"
  fi
  console::_cut "$1"
}

# console::_show_redrawn I TEXT: the same for a TEXT with redrawn lines, of any log that gets no bytes.
console::_show_redrawn() {
  local first rest
  output::split "$2"
  first=${OUTPUT_LINES[0]-} rest=$OUTPUT_REST
  if [[ -n $half && (${2:0:${#first}} != "$first" || -z $first && $rest == *$'\r'?*) ]]; then
    console::_print '\n' # what is on stdout is an old state
  fi
  if ((${#OUTPUT_LINES[@]})); then
    [[ -n ${told[$1]} && $first == "${told[$1]}" ]] || console::_print "${prefixes[$1]}%s\n" "$first"
    ((${#OUTPUT_LINES[@]} == 1)) || console::_print "${prefixes[$1]}%s\n" "${OUTPUT_LINES[@]:1}"
    told[$1]='' since[$1]=''
  fi
  rests[$1]=''
  if [[ $rest == *$'\r'?* ]]; then
    console::_wait "$1" "$rest"
  elif [[ -n $rest ]]; then
    console::_show "$1" "$rest"
  fi
}

# console::_cut I: shows the unfinished line of log I if it is too long to wait.
console::_cut() {
  ((${#rests[$1]} > CONSOLE_LONGEST)) || return 0
  output::cut "${rests[$1]}" "$CONSOLE_LONGEST"
  console::_print '%s ...\n' "${prefixes[$1]}$REPLY"
  rests[$1]="... ${rests[$1]:${#REPLY}}"
}

# console::_wait I LINE: keeps the state of an unfinished LINE of log I, unless it is too long to wait.
console::_wait() {
  output::state "$2"
  rests[$1]=$'\r'$REPLY
  [[ $2 != *$'\r' ]] || rests[$1]+=$'\r' # the next state begins at once
  if ((${#REPLY} >= CONSOLE_LONGEST)); then
    rests[$1]=''
    console::_print "${prefixes[$1]}%s ...\n... " "$REPLY"
  elif [[ -z ${since[$1]} ]]; then
    clock::now && since[$1]=$REPLY
  fi
}

# Shows the states that have waited for CONSOLE_STATE_EVERY, if they are new.
console::_show_states() {
  local i now=''
  for i in "${!fds[@]}"; do
    [[ -n ${since[i]} ]] || continue
    [[ -n $now ]] || { clock::now && now=$REPLY; }
    ((now - since[i] >= CONSOLE_STATE_EVERY)) || continue
    since[i]=$now
    console::_show_state "$i"
  done
}

console::_show_state() {
  output::state "${rests[$1]}"
  [[ $REPLY != "${told[$1]}" ]] || return 0
  told[$1]=$REPLY
  console::_print "${prefixes[$1]}%s\n" "$REPLY"
}

# console::_print FORMAT TEXT...: on stdout.
console::_print() {
  [[ $1 != %s || -n $2 ]] || return 0
  console::_clear_status
  # shellcheck disable=SC2059 # the format is ours; a prefix in it is a number
  printf "$@" || exit 0 # nobody reads our stdout any more
  half=yes
  [[ $1 != *'\n' && ${!#} != *$'\n' ]] || half=''
}

# The launcher has closed the pipe: the last lines may have no newline.
console::_end() {
  local i
  for i in "${!fds[@]}"; do
    if [[ -n ${since[i]} ]]; then
      console::_show_state "$i"
    elif [[ $way == lines && -n ${rests[i]} ]]; then
      console::_print '%s\n' "${prefixes[i]}${rests[i]}"
    fi
  done
  [[ -z $half ]] || console::_print '\n'
  console::_clear_status
}

# console::_status: on a terminal, shows for how long nothing came, once that is CONSOLE_STATUS_AFTER. A progress bar
# stays as it is: the status is on the line below it, and the cursor goes back.
console::_status() {
  local seconds format='\r\e[K%s'
  [[ -n $terminal ]] || return 0
  clock::now
  ((REPLY - last_output >= CONSOLE_STATUS_AFTER)) || return 0
  seconds=$(((REPLY - last_output) / 100)) status='\r\e[K'
  if [[ -n $half && -t 1 ]]; then
    format='\eD\e[A\e7\eD\r\e[K%s\e8' # makes the line below, in case this is the last one
    status='\e7\eD\r\e[K\e8'
  fi
  printf -v seconds '%d:%02d' $((seconds / 60)) $((seconds % 60))
  log::count "${#PLAN_RANKS[@]}" rank
  log::harmless $"$LOG_NAME: $REPLY running, no output for $seconds"
  # shellcheck disable=SC2059 # one of the two above
  printf "$format" "$REPLY" >&"$terminal"
}

console::_clear_status() {
  # shellcheck disable=SC2059 # how console::_status wants it
  [[ -z $status ]] || printf "$status" >&"$terminal"
  status=''
}
