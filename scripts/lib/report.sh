# shellcheck shell=bash
# What the user learns: the first failure at once, a table at the end, and the same in launch.json.

readonly REPORT_SIGNALS=('' HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM)
readonly REPORT_LOG_LINES=15

# report::first_failure NAME: said when it happens, before the others are stopped.
report::first_failure() {
  local who rank others=0
  for rank in "${PLAN_RANKS[@]}"; do
    [[ -n ${SUPERVISE_STATUS[$rank]-} ]] || others=$((others + 1))
  done
  report::_who "$1"
  who=$REPLY
  report::_how "${SUPERVISE_STATUS[$1]}"
  who+=" $REPLY"
  report::_seconds "$1"
  log::say "$who after $REPLY; stopping the other $others"
}

# report::print: the end of the log that matters, then a line a rank, on stderr.
report::print() {
  local i name log
  if [[ -n $SUPERVISE_FIRST ]]; then
    report::_log "$SUPERVISE_FIRST"
    log::say "the last lines of $REPLY:"
    report::_indented_tail "$REPLY"
  fi
  printf '%-5s %-7s %-28s %-9s %s\n' rank device exit time log >&2 || :
  for i in "${!PLAN_RANKS[@]}"; do
    name=${PLAN_RANKS[i]}
    report::_log "$name"
    log=$REPLY
    report::_exit "$name"
    printf '%-5s %-7s %-28s ' "$name" "${PLAN_DEVICES[i]}" "$REPLY" >&2 || :
    report::_seconds "$name"
    printf '%-9s %s\n' "$REPLY" "$log" >&2 || :
  done
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
  if [[ -z $status ]]; then
    REPLY='not started'
    return 0
  fi
  if [[ -n ${SUPERVISE_LOST[$1]-} ]]; then
    REPLY='no word of its end'
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
  REPLY=$PLAN_RUN_DIR/rank_$1.log
  [[ $1 == [0-9]* ]] || REPLY=$PLAN_RUN_DIR/$1.log # the scheduler's, an engine's
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

# report::save STATUS: adds the outcome to launch.json, whole or not at all.
report::save() {
  local -r file=$PLAN_RUN_DIR/launch.json
  local plan name i ended members='' separator=''
  plan=$(<"$file") || return 0
  [[ $plan == *'}' ]] || return 0
  for name in "${SUPERVISE_NAMES[@]}"; do
    i=${SUPERVISE_STATUS[$name]-null}
    report::_seconds "$name"
    members+="$separator"$'\n'"      \"$name\": {\"status\": $i, \"seconds\": ${REPLY% s}}"
    separator=,
  done
  members=${members//: -\}/: null\}}
  printf -v ended '%(%Y-%m-%dT%H:%M:%SZ)T' -1
  printf '%s,\n  "outcome": {\n    "ended": "%s",\n    "exit": %d,\n    "first_failure": %s,\n    "stopped_by": %s,\n    "members": {%s\n    }\n  }\n}\n' \
    "${plan%$'\n'\}}" "$ended" "$1" \
    "$(report::_json "$SUPERVISE_FIRST")" "$(report::_json "${SUPERVISE_SIGNAL:+SIG$SUPERVISE_SIGNAL}")" \
    "$members" >"$file.part" && mv -f -- "$file.part" "$file"
}

report::_json() {
  if [[ -n $1 ]]; then printf '"%s"' "$1"; else printf null; fi
}
