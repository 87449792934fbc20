# shellcheck shell=bash
# The output of the ranks while they run: rank 0's log, or all logs, followed on stdout.
#
# The ranks write their logs themselves; nothing passes through the launcher. A reader follows the files until the
# launcher closes the pipe to it, then prints the rest and ends. It is a process of its own, so that a blocked terminal
# never blocks the launcher. On a terminal, if no line comes for CONSOLE_STATUS_AFTER, stderr shows since when.

CONSOLE_SHOWS=0    # 0: the first rank's log; all: every rank's, with its number; none
CONSOLE_CONTROL='' # the launcher's end of the pipe
CONSOLE_PID=''

readonly CONSOLE_STATUS_AFTER=3000                             # hundredths of a second without a line
readonly CONSOLE_BLOCK=16384                                   # bytes
readonly CONSOLE_COLOURS=(36 33 32 35 34 96 93 92 95 94 31 91) # of the ranks' numbers, in turn

console::show() {
  CONSOLE_SHOWS=$1
}

# console::open: starts to follow the logs of this attempt.
console::open() {
  [[ $CONSOLE_SHOWS != none ]] || return 0
  local -a ranks=("${PLAN_RANKS[0]}") logs=()
  local rank
  [[ $CONSOLE_SHOWS == 0 ]] || ranks=("${PLAN_RANKS[@]}")
  for rank in "${ranks[@]}"; do
    logs+=("$PLAN_LOG_DIR/rank_$rank.log")
    { : >>"$PLAN_LOG_DIR/rank_$rank.log"; } 2>/dev/null || : # if that fails, the rank says so
  done
  exec {CONSOLE_CONTROL}<> <(:)
  set -m # a process group of its own: Ctrl-C must not cut off the last lines
  console::_follow "${logs[@]}" &
  set +m
  CONSOLE_PID=$!
}

# console::close: closes the launcher's end of the pipe, so that the reader ends.
console::close() {
  [[ -z $CONSOLE_CONTROL ]] || exec {CONSOLE_CONTROL}>&-
  CONSOLE_CONTROL=''
}

# console::finish: waits until the logs are on stdout up to their end; a signal ends the wait and the reader.
console::finish() {
  local status=0
  [[ -n $CONSOLE_PID ]] || return 0
  console::close
  kill -CONT "$CONSOLE_PID" 2>/dev/null || : # wakes a reader that somebody stopped
  wait "$CONSOLE_PID" 2>/dev/null || status=$?
  ((status <= 128)) || kill -TERM "$CONSOLE_PID" 2>/dev/null || :
  CONSOLE_PID=''
}

# console::_follow LOG...: the reader. Its waits grow while no line comes, because a job may run for weeks.
console::_follow() {
  local control i fd waits=(0.05 0.1 0.2 0.5 1 1 1 1 1 1 2) idle=0 ended=0 last_line=0 status='' terminal=''
  local -a fds=() prefixes=() partials=()
  local LC_ALL=C # bytes, not characters
  supervise::close_pipes
  trap - EXIT
  trap '' TTOU # after `stty tostop`, the terminal would stop us
  [[ ! -t 2 || $TERM == dumb ]] || exec {terminal}>&2
  # No stderr from here on: a message about a closed stdout would help nobody.
  exec {control}<"/dev/fd/$CONSOLE_CONTROL" {CONSOLE_CONTROL}>&- 2>/dev/null
  for i; do
    exec {fd}<"$i"
    fds+=("$fd") && partials+=('')
  done
  console::_prefixes
  clock::now
  last_line=$REPLY
  while :; do
    for i in "${!fds[@]}"; do
      console::_show "$i"
    done
    ((ended == 0)) || break
    console::_status
    read -r -t "${waits[idle]}" -u "$control" _ || (($? > 128)) || ended=1 # not a timeout: the end of the pipe
    ((idle == ${#waits[@]} - 1)) || idle=$((idle + 1))
  done
  console::_clear_status
  for i in "${!fds[@]}"; do
    [[ -z ${partials[i]} ]] || printf '%s%s\n' "${prefixes[i]}" "${partials[i]}"
  done
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

# console::_show I: prints the new whole lines of log I; an unfinished line waits for its end. It reads blocks, because
# bash takes seven times as long line by line.
console::_show() {
  local chunk='' rest whole next=$'\n'${prefixes[$1]}
  while IFS= read -r -N "$CONSOLE_BLOCK" -u "${fds[$1]}" chunk || [[ -n $chunk ]]; do
    rest=${chunk##*$'\n'}
    if [[ $rest == "$chunk" ]]; then
      partials[$1]+=$chunk
    else
      whole=${partials[$1]}${chunk:0:${#chunk}-${#rest}-1}
      partials[$1]=$rest
      [[ -z ${prefixes[$1]} ]] || whole=${prefixes[$1]}${whole//$'\n'/$next}
      console::_clear_status
      printf '%s\n' "$whole" || exit 0 # nobody reads our stdout any more
      idle=0
      if [[ -n $terminal ]]; then
        clock::now
        last_line=$REPLY
      fi
    fi
    ((${#chunk} == CONSOLE_BLOCK)) || break
  done
}

# console::_status: on a terminal, shows for how long no line came, once that is CONSOLE_STATUS_AFTER.
console::_status() {
  local seconds running="${#PLAN_RANKS[@]} ranks"
  [[ -n $terminal ]] || return 0
  clock::now
  ((REPLY - last_line >= CONSOLE_STATUS_AFTER)) || return 0
  seconds=$(((REPLY - last_line) / 100)) status=1
  [[ $running != '1 ranks' ]] || running='1 rank'
  printf '\r\e[K%s: %s running, no line for %d:%02d' "$LOG_NAME" "$running" \
    $((seconds / 60)) $((seconds % 60)) >&"$terminal"
}

console::_clear_status() {
  [[ -z $status ]] || printf '\r\e[K' >&"$terminal"
  status=''
}
