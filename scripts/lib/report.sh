# shellcheck shell=bash
# What the user learns: the first failure at once, a table at the end, and the same in launch.json.

readonly REPORT_SIGNALS=('' HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM)
readonly REPORT_LOG_LINES=15
readonly REPORT_ROWS=16 # with more ranks, those that ended alike share a row
REPORT_OOM_KILLS=0
REPORT_LOST_RANKS=''             # of the host that the engine has lost
REPORT_ASKS='' REPORT_ANSWERS='' # pipes to and from tools/diagnose.py, once it was called
REPORT_ATTEMPTS=''               # the outcomes of earlier attempts, as JSON objects with commas between them

# report::first_failure NAME: said when it happens, before the others are stopped.
report::first_failure() {
  local who rank others=0
  for rank in "${PLAN_RANKS[@]}"; do
    [[ -n ${SUPERVISE_STATUS[$rank]-} ]] || others=$((others + 1))
  done
  if report::_lost_host "$1"; then
    ((others == 0)) || REPLY+="; stopping the other $others"
    log::say "$REPLY"
    return 0
  fi
  report::_who "$1"
  who=$REPLY
  if [[ -z ${SUPERVISE_BEGAN[$1]-} ]]; then
    log::say "$who could not be started, there are too many processes (see ulimit -u, and the container's limit of pids); stopping the other $others"
    return 0
  fi
  report::_how "${SUPERVISE_STATUS[$1]}"
  who+=" $REPLY"
  report::_seconds "$1"
  log::say "$who after $REPLY; stopping the other $others"
}

# report::_lost_host NAME: whether the engine NAME ended because it lost a host; a sentence about it in
# REPLY, and its ranks in REPORT_LOST_RANKS.
report::_lost_host() {
  local i host ranks=''
  [[ $1 == "$SUPERVISE_CARRIER" ]] && declare -F engine::lost_host >/dev/null || return 1
  engine::lost_host "${SUPERVISE_LOG[$1]}"
  host=$REPLY
  [[ -n $host ]] || return 1
  for i in "${!PLAN_HOSTS[@]}"; do
    [[ ${PLAN_HOSTS[i]#*@} != "$host" ]] || REPORT_LOST_RANKS+=" ${PLAN_RANKS[i]}"
  done
  report::_ranges "$REPORT_LOST_RANKS"
  ranks=$REPLY
  report::_seconds "$1"
  REPLY="the host $host${ranks:+ (rank $ranks)} is lost after $REPLY: $1 does not reach it any more, so see whether it is up, and its network"
}

# report::begin: remembers how many processes the kernel has killed for want of memory so far.
report::begin() {
  REPORT_LOST_RANKS=''
  report::_oom_kills
  REPORT_OOM_KILLS=$REPLY
}

# report::_oom_kills: that number, in REPLY; 0 where the kernel does not tell.
report::_oom_kills() {
  local name value
  while read -r name value; do
    [[ $name == oom_kill ]] && REPLY=$value && return 0
  done 2>/dev/null </proc/vmstat
  REPLY=0
}

# report::stacks: where every rank is, in rank_N.stack beside its log, and in short on stderr.
report::stacks() {
  local name line
  local -a processes=()
  for name in "${PLAN_RANKS[@]}"; do
    [[ -n ${SUPERVISE_STATUS[$name]-} || -z ${SUPERVISE_GROUP[$name]-} ]] || processes+=("$name=${SUPERVISE_GROUP[$name]}")
  done
  if ((${#processes[@]} == 0)); then
    [[ -z $SUPERVISE_CARRIER ]] || report::_carried_stacks
    return 0
  fi
  while IFS= read -r line; do
    log::say "$line"
  done < <(supervise::forget && exec "$PYTHON" "$LAUNCH_ROOT/tools/diagnosis/stacks.py" "$PLAN_LOG_DIR" "${processes[@]}")
}

# The same of ranks that an engine started, by their agents; those at the same place share a line.
report::_carried_stacks() {
  local name place
  local -a order=()
  local -A at=()
  supervise::ask_stacks
  for name in "${PLAN_RANKS[@]}"; do
    place=${SUPERVISE_STACK[$name]-}
    [[ -n $place ]] || continue
    [[ -n ${at[$place]-} ]] || order+=("$place")
    at[$place]+=" $name"
  done
  for place in ${order[@]+"${order[@]}"}; do
    report::_ranges "${at[$place]}"
    [[ $REPLY == *[-,]* ]] && REPLY="ranks $REPLY" || REPLY="rank $REPLY"
    log::say "$REPLY: $place"
  done
}

# report::print: a line a rank, then the end of the log that matters, on stderr.
report::print() {
  local log
  ((${#SUPERVISE_NAMES[@]})) || return 0
  [[ -n $LOG_QUIET && -z $SUPERVISE_FIRST ]] || report::_table
  if [[ -n $SUPERVISE_FIRST ]]; then
    report::_log "$SUPERVISE_FIRST"
    [[ ! -s $REPLY ]] || { log::say "the last lines of $REPLY:" && report::_indented_tail "$REPLY"; }
  fi
  report::_disk
}

# A log ends without a word when its disk is full.
report::_disk() {
  local -r probe=$PLAN_LOG_DIR/.probe
  report::path "$PLAN_LOG_DIR"
  if ! { printf '%4096s' '' >"$probe"; } 2>/dev/null; then
    log::say "no space left on the disk of $REPLY, or it cannot be written any more: the logs may lack their end; make room, or choose another with --log_dir"
  fi
  rm -f -- "$probe"
}

# The table of all ranks, with their hosts if there are several; where there are many ranks, those that
# ended alike share a line.
report::_table() {
  local i name log how seconds key host=''
  local -a order=()
  local -A alike=()
  ((${#PLAN_HOSTS[@]} == 0)) || printf -v host '%-16s' host
  printf '%-5s %-7s %s%-28s %-9s %s\n' rank device "$host" exit time log >&2 || :
  for i in "${!PLAN_RANKS[@]}"; do
    name=${PLAN_RANKS[i]}
    report::_exit "$name"
    how=$REPLY
    if ((${#PLAN_RANKS[@]} > REPORT_ROWS)) && [[ $name != "$SUPERVISE_FIRST" ]]; then
      [[ -n ${alike[$how]-} ]] || order+=("$how")
      alike[$how]+=" $name"
      continue
    fi
    report::_seconds "$name"
    seconds=$REPLY
    report::_log "$name"
    [[ -z $host ]] || printf -v host '%-15s ' "${PLAN_HOSTS[i]}"
    printf '%-5s %-7s %s%-28s %-9s %s\n' "$name" "${PLAN_DEVICES[i]}" "$host" "$how" "$seconds" "$REPLY" >&2 || :
  done
  for key in ${order[@]+"${order[@]}"}; do
    report::_ranges "${alike[$key]}"
    printf '%s: ranks %s\n' "$key" "$REPLY" >&2 || :
  done
}

# report::_ranges RANKS: "0 1 2 5" as "0-2,5", in REPLY.
report::_ranges() {
  local rank first='' last=''
  REPLY=''
  for rank in $1 end; do
    if [[ -n $first && $rank == $((last + 1)) ]]; then
      last=$rank
      continue
    fi
    [[ -z $first ]] || REPLY+=${REPLY:+,}$first
    [[ $first == "$last" ]] || REPLY+=-$last
    first=$rank last=$rank
  done
}

# report::call_diagnosis: Python takes 50 ms until it has read what it needs. So it is called when a rank
# fails, and asked when all have ended. Signals to our group are not for it; it ends when we do. Of a rank
# that could not be started there is nothing to read, and first_failure has said why.
report::call_diagnosis() {
  [[ -z $REPORT_ASKS && -n ${SUPERVISE_BEGAN[$SUPERVISE_FIRST]-}$SUPERVISE_CARRIER ]] || return 0
  exec {REPORT_ASKS}<> <(:)
  exec {REPORT_ANSWERS}< <(
    trap '' INT TERM HUP QUIT
    supervise::forget
    console::close
    exec "$PYTHON" "$LAUNCH_ROOT/tools/diagnose.py" "$PLAN_RUN_DIR" --when_told \
      <"/dev/fd/$REPORT_ASKS" 2>/dev/null {REPORT_ASKS}>&-
  )
}

# report::diagnosis: what the failure means, and what to do about it.
report::diagnosis() {
  local line
  [[ -n $SUPERVISE_FIRST ]] || return 0
  report::call_diagnosis
  [[ -n $REPORT_ASKS ]] || return 0
  report::_oom_kills
  printf '%d\n' "$((REPLY - REPORT_OOM_KILLS))" >&"$REPORT_ASKS"
  while IFS= read -r line; do
    log::say "$line"
  done <&"$REPORT_ANSWERS"
}

# report::_who NAME: the member in words, in REPLY.
report::_who() {
  local i
  REPLY="MindSpore's scheduler"
  [[ $1 == scheduler ]] || REPLY=$1
  for i in "${!PLAN_RANKS[@]}"; do
    [[ ${PLAN_RANKS[i]} != "$1" ]] || REPLY="rank $1 (device ${PLAN_DEVICES[i]}${PLAN_HOSTS[i]:+ of ${PLAN_HOSTS[i]}})"
  done
}

# report::_how STATUS: an exit status in words, in REPLY. 128+N is how bash reports signal N; a program
# may also exit with such a number, and nothing tells the two apart.
report::_how() {
  local -r name=${REPORT_SIGNALS[$1>128?$1-128:0]-}
  if (($1 > 128)) && [[ -n $name ]]; then
    REPLY="was ended by SIG$name"
  else
    REPLY="exited with code $1"
  fi
}

# report::_exit NAME: the column of the table, in REPLY.
report::_exit() {
  local -r status=${SUPERVISE_STATUS[$1]-}
  local signal=''
  if [[ -z $status || -z ${SUPERVISE_BEGAN[$1]-} ]]; then
    REPLY='not started'
    return 0
  fi
  if [[ -n ${SUPERVISE_LOST[$1]-} ]]; then
    REPLY='not started'
    [[ -z ${SUPERVISE_BEGAN[$1]-} ]] || REPLY='no word of its end'
    [[ " $REPORT_LOST_RANKS " != *" $1 "* ]] || REPLY='lost with its host'
    return 0
  fi
  REPLY=$status
  ((status <= 128)) || signal=${REPORT_SIGNALS[status-128]-}
  [[ -z $signal ]] || REPLY+=" SIG$signal"
  if [[ $1 == "$SUPERVISE_FIRST" ]]; then
    REPLY+=', failed first'
  elif [[ -n $signal && $SUPERVISE_STATE != running ]]; then
    REPLY+=', stopped by us'
  fi
}

# report::_log NAME: the path of its log, in REPLY.
report::_log() {
  REPLY=$PLAN_LOG_DIR/rank_$1.log
  [[ $1 == [0-9]* ]] || REPLY=$PLAN_LOG_DIR/$1.log # the scheduler's, an engine's
  report::path "$REPLY"
}

# report::path PATH: as short as it can be named from here, in REPLY.
report::path() {
  REPLY=$1
  [[ $REPLY != "$PWD"/* ]] || REPLY=${REPLY#"$PWD"/}
}

# report::_seconds NAME: how long it ran, in REPLY.
report::_seconds() {
  local -r began=${SUPERVISE_BEGAN[$1]-} ended=${SUPERVISE_ENDED[$1]-}
  REPLY=-
  [[ -n $began && -n $ended ]] || return 0
  local -r tenths=$(((ended - began) / 10))
  REPLY="$((tenths / 10)).$((tenths % 10)) s"
}

report::_indented_tail() {
  local line
  while IFS= read -r line || [[ -n $line ]]; do
    printf '    %s\n' "$line" >&2 || :
  done < <(tail -n "$REPORT_LOG_LINES" -- "$1")
}

# report::keep_attempt STATUS: an attempt that failed, and is not the last one.
report::keep_attempt() {
  report::_outcome "$1"
  REPORT_ATTEMPTS+="${REPORT_ATTEMPTS:+, }{$REPLY}"
}

# report::save STATUS: adds the outcome to launch.json, whole or not at all.
report::save() {
  local -r file=$PLAN_RUN_DIR/launch.json
  local plan
  plan=$(<"$file") || return 0
  [[ $plan == *'}' ]] || return 0
  report::_outcome "$1"
  [[ -z $REPORT_ATTEMPTS ]] || REPLY+=", \"attempts\": [$REPORT_ATTEMPTS]"
  # shellcheck disable=SC2015 # what fails, wherever, is the same to us
  printf '%s,\n  "outcome": {%s}\n}\n' "${plan%$'\n'\}}" "$REPLY" 2>/dev/null >"$file.part" \
    && mv -f -- "$file.part" "$file" \
    || log::say "the outcome could not be added to $file: is the disk full? (df -h)"
}

# report::_outcome STATUS: the members of a JSON object about this attempt, in REPLY.
report::_outcome() {
  local name status ended members='' limit=${SUPERVISE_LIMIT:-${SUPERVISE_SIGNAL:+SIG$SUPERVISE_SIGNAL}}
  for name in ${SUPERVISE_NAMES[@]+"${SUPERVISE_NAMES[@]}"}; do
    status=${SUPERVISE_STATUS[$name]-null}
    report::_seconds "$name"
    [[ $REPLY != - ]] || REPLY=null
    members+="${members:+, }\"$name\": {\"status\": $status, \"seconds\": ${REPLY% s}}"
  done
  printf -v ended '%(%Y-%m-%dT%H:%M:%SZ)T' -1
  REPLY="\"ended\": \"$ended\", \"exit\": $1, \"logs\": \".${PLAN_LOG_DIR#"$PLAN_RUN_DIR"}\""
  REPLY+=", \"first_failure\": ${SUPERVISE_FIRST:+\"}${SUPERVISE_FIRST:-null}${SUPERVISE_FIRST:+\"}"
  REPLY+=", \"stopped_by\": ${limit:+\"}${limit:-null}${limit:+\"}, \"members\": {$members}"
}
