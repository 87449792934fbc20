# shellcheck shell=bash
# Reports to the user: the first failure at once, and a table at the end.

readonly REPORT_SIGNALS=('' HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM)
readonly REPORT_ROWS=16     # with more ranks, ranks that ended the same way share a row
readonly REPORT_FAILURES=20 # so many are printed when they happen
REPORT_LOST_RANKS=''        # of the host that the engine has lost
REPORT_LOST_HOST=''         # that host, as the plan names it
REPORT_FAILED=0             # failures so far

# report::failure NAME stop|go: prints it when it happens, before the others are stopped, or go on.
report::failure() {
  local others=''
  REPORT_FAILED=$((REPORT_FAILED + 1))
  if ((REPORT_FAILED > REPORT_FAILURES)) && [[ $2 == go ]]; then
    ((REPORT_FAILED > REPORT_FAILURES + 1)) || log::say $"more ranks fail; the report at the end names them"
    return 0
  fi
  case $2$MEMBERS_RANKS_LEFT in
    stop0 | go0) ;;
    stop1) others=$"; stopping the other rank" ;;
    stop*) others=$"; stopping the other $MEMBERS_RANKS_LEFT ranks" ;;
    go1) others=$"; the other rank goes on" ;;
    go*) others=$"; the other $MEMBERS_RANKS_LEFT ranks go on" ;;
  esac
  report::what "$1"
  log::say "$REPLY$others"
}

# report::what NAME: which member has failed, and how, in REPLY.
report::what() {
  report::lost_host "$1"
  [[ -z $REPLY ]] || return 0
  local who seconds status
  report::_who "$1"
  who=$REPLY
  if [[ -z ${MEMBERS_BEGAN[$1]-} ]]; then
    REPLY=$"$who could not be started: there are too many processes (see ulimit -u, and the container's limit of pids)"
    return 0
  fi
  members::seconds "$1"
  seconds=$REPLY
  status=${MEMBERS_STATUS[$1]}
  report::_signal "$status"
  if [[ -n $REPLY ]]; then
    REPLY=$"$who was ended by SIG$REPLY after $seconds s"
  else
    REPLY=$"$who exited with code $status after $seconds s"
  fi
}

# report::lost_host NAME: if the engine NAME ended because it lost a host: a sentence about it in REPLY, the host in
# REPORT_LOST_HOST and its ranks in REPORT_LOST_RANKS. Else all are empty.
report::lost_host() {
  local i host own named='' ranks=''
  REPLY='' REPORT_LOST_RANKS='' REPORT_LOST_HOST=''
  [[ $1 == "$CARRIED_ENGINE" ]] || return 0
  engine::lost_host "${MEMBERS_LOG[$1]}"
  host=$REPLY
  [[ -n $host ]] || return 0
  for i in "${!PLAN_HOSTS[@]}"; do # Open MPI 4 has the name that the user wrote, 5 the host's own, without its domain
    own=${MEMBERS_HOST[${PLAN_RANKS[i]}]-}
    if [[ $host == "${PLAN_HOSTS[i]#*@}" || $host == "$own" || $host == "${own%%.*}" ]]; then
      REPORT_LOST_RANKS+=" ${PLAN_RANKS[i]}" REPORT_LOST_HOST=${PLAN_HOSTS[i]} named=${PLAN_HOSTS[i]#*@}
    fi
  done
  if [[ -n $REPORT_LOST_RANKS ]]; then
    # shellcheck disable=SC2086 # a list of numbers
    log::named rank $REPORT_LOST_RANKS
    ranks=" ($REPLY)"
  fi
  members::seconds "$1"
  host=${named:-$host}$ranks
  REPLY=$"the host $host is lost after $REPLY s: $1 does not reach it any more; check that it is up, and its network"
}

# report::print: on stderr, the table of ranks, then the end of the log of the member that failed first.
report::print() {
  ((${#MEMBERS_NAMES[@]})) || return 0
  [[ -n $LOG_QUIET && -z $JUDGING_FIRST ]] || report::_table
  if [[ -n $JUDGING_FIRST ]]; then
    ! stopping::keeps_going || report::_failed
    report::_log "$JUDGING_FIRST"
    report::_tail "$REPLY"
  fi
  plan::logs_problem
  [[ -z $REPLY ]] || log::say "$REPLY"
}

# report::_failed: which ranks failed by themselves, where the others went on.
report::_failed() {
  local name
  ((${#PLAN_RANKS[@]} > 1)) || return 0
  alike::clear
  for name in "${PLAN_RANKS[@]}"; do
    [[ -z ${MEMBERS_FAILED[$name]+set} ]] || alike::add failed "$name"
  done
  ((${#ALIKE_KEYS[@]})) || return 0
  alike::named 0
  set -- "${ALIKE_COUNT[0]}"
  log::say $"$1 of ${#PLAN_RANKS[@]} ranks failed: $REPLY (--keep_going)"
}

# report::where: what is left of the run in its folder, as the end of a sentence, in REPLY.
report::where() {
  report::path "$PLAN_RUN_DIR"
  if [[ -f $PLAN_RUN_DIR/launch.json ]]; then
    REPLY=$"; logs and launch.json are in $REPLY"
  elif [[ -d $PLAN_RUN_DIR ]]; then
    REPLY=$"; logs are in $REPLY"
  else
    REPLY=''
  fi
}

# The table of all ranks, with their hosts if there are several. See REPORT_ROWS for many ranks.
report::_table() {
  local i name place='' rows=${#PLAN_RANKS[@]}
  # shellcheck disable=SC2256 # words of the heading; some are also the names of variables
  ((${#PLAN_HOSTS[@]} == 0)) || report::_cell place 16 $"host"
  # shellcheck disable=SC2256
  report::_row $"rank" $"device" "$place" $"exit" $"time" $"log"
  for i in "${!PLAN_RANKS[@]}"; do
    name=${PLAN_RANKS[i]}
    if ((rows <= REPORT_ROWS)) || [[ $name == "$JUDGING_FIRST" ]]; then
      report::_exit "$name"
      report::_row_of "$i" "$REPLY"
    fi
  done
  ((rows <= REPORT_ROWS)) || report::_ways
}

# report::_row_of I EXIT: the row of the plan's rank I.
report::_row_of() {
  local -r i=$1 name=${PLAN_RANKS[$1]}
  local seconds log place=''
  members::seconds "$name"
  seconds=$REPLY
  [[ $seconds == - ]] || seconds+=' s'
  report::_log "$name"
  log::harmless "$REPLY"
  log=$REPLY
  if ((${#PLAN_HOSTS[@]})); then
    log::harmless "${PLAN_HOSTS[i]}"
    printf -v place '%-15s ' "$REPLY"
  fi
  report::_row "$name" "${PLAN_DEVICES[i]}" "$place" "$2" "$seconds" "$log"
}

# report::_ways: a line for each way in which ranks ended. What makes a way is put into words once, not for each rank.
report::_ways() {
  local name what at
  local -A words=()
  alike::clear
  for name in "${PLAN_RANKS[@]}"; do
    [[ $name != "$JUDGING_FIRST" ]] || continue
    what="${MEMBERS_STATUS[$name]-} ${MEMBERS_BEGAN[$name]+began} ${MEMBERS_FAILED[$name]-} ${MEMBERS_LOST[$name]+$REPORT_LOST_RANKS $name}"
    if [[ -z ${words[$what]-} ]]; then
      report::_exit "$name"
      words[$what]=$REPLY
    fi
    alike::add "${words[$what]}" "$name"
  done
  for at in "${!ALIKE_KEYS[@]}"; do
    alike::named "$at"
    printf '%s: %s\n' "${ALIKE_KEYS[at]}" "$REPLY" >&2 || :
  done
}

# report::_row RANK DEVICE HOST EXIT TIME LOG: prints a row of the table. HOST has the width of its column already.
report::_row() {
  local rank device how seconds
  report::_cell rank 5 "$1"
  report::_cell device 7 "$2"
  report::_cell how 28 "$4"
  report::_cell seconds 9 "$5"
  printf '%s %s %s%s %s %s\n' "$rank" "$device" "$3" "$how" "$seconds" "$6" >&2 || :
}

# report::_cell VARIABLE COLUMNS TEXT: TEXT with blanks up to this width; a Chinese character is two columns wide.
report::_cell() {
  local -r wide=${3//[[:ascii:]]/}
  local width=$(($2 - ${#3} - ${#wide}))
  printf -v "$1" '%s%*s' "$3" "$((width > 0 ? width : 0))" ''
}

# report::_who NAME: the member as a message names it, in REPLY.
report::_who() {
  local i
  REPLY=$"MindSpore's scheduler"
  [[ $1 == scheduler ]] || REPLY=$1
  [[ $1 == [0-9]* ]] || return 0
  i=$(($1 - PLAN_RANKS[0]))                                        # ranks of most hosts have consecutive numbers
  [[ ${PLAN_RANKS[i]-} == "$1" ]] || report::_place "$1" || return # with --keep_going thousands may fail
  if [[ -n ${PLAN_HOSTS[i]-} ]]; then
    REPLY=$"rank $1 (device ${PLAN_DEVICES[i]} of ${PLAN_HOSTS[i]})"
  else
    REPLY=$"rank $1 (device ${PLAN_DEVICES[i]})"
  fi
}

# report::_place RANK: where a rank is in the plan, in `i` of the caller; fails if it is not there.
report::_place() {
  for i in "${!PLAN_RANKS[@]}"; do
    [[ ${PLAN_RANKS[i]} != "$1" ]] || return 0
  done
  return 1
}

# report::_signal STATUS: the signal that an exit status stands for, in REPLY; empty if none. Bash reports signal N as
# 128+N; a program may also exit with such a number, and bash cannot distinguish the two.
report::_signal() {
  REPLY=${REPORT_SIGNALS[$1>128?$1-128:0]-}
}

# report::_exit NAME: the column of the table, in REPLY.
report::_exit() {
  local -r status=${MEMBERS_STATUS[$1]-}
  local signal=''
  if [[ -z $status || -z ${MEMBERS_BEGAN[$1]-} ]]; then
    REPLY=$"not started"
    return 0
  fi
  if [[ -n ${MEMBERS_LOST[$1]-} ]]; then
    REPLY=$"end not reported"
    [[ " $REPORT_LOST_RANKS " != *" $1 "* ]] || REPLY=$"lost with its host"
    return 0
  fi
  REPLY=$status
  ((status <= 128)) || signal=${REPORT_SIGNALS[status-128]-}
  [[ -z $signal ]] || REPLY+=" SIG$signal"
  if [[ $1 == "$JUDGING_FIRST" ]]; then
    REPLY+=$", failed first"
  elif [[ -n ${MEMBERS_FAILED[$1]-} ]]; then
    REPLY+=$", failed"
  elif [[ -n $signal && $STOPPING_STATE != running ]]; then
    REPLY+=$", stopped by us"
  fi
}

# report::_log NAME: the path of its log, in REPLY.
report::_log() {
  REPLY=$PLAN_LOG_DIR/rank_$1.log
  [[ $1 == [0-9]* ]] || REPLY=$PLAN_LOG_DIR/$1.log # the scheduler or an engine
  report::path "$REPLY"
}

# report::path PATH: PATH in REPLY, relative to the current folder if it is below it.
report::path() {
  REPLY=$1
  [[ $REPLY != "$PWD"/* ]] || REPLY=${REPLY#"$PWD"/}
}

# report::_tail LOG: prints its last lines, if it has any.
report::_tail() {
  local line
  [[ -s $1 ]] || return 0
  log::say $"the last lines of $1:"
  while IFS= read -r line; do
    log::harmless "$line"
    printf '    %s\n' "$REPLY" >&2 || :
  done < <(output::tail "$1")
}
