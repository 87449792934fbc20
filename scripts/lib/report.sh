# shellcheck shell=bash
# Reports to the user: the first failure at once, and a table at the end.

readonly REPORT_SIGNALS=('' HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM)
readonly REPORT_ROWS=16 # with more ranks, ranks that ended the same way share a row
REPORT_LOST_RANKS=''    # of the host that the engine has lost

# report::failure NAME stop|go: prints it when it happens, before the others are stopped, or go on.
report::failure() {
  local others=''
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
  report::_lost_host "$1"
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

# report::_lost_host NAME: if the engine NAME ended because it lost a host: a sentence about it in REPLY, and the host's
# ranks in REPORT_LOST_RANKS. Else both are empty.
report::_lost_host() {
  local i host own named='' ranks=''
  REPLY='' REPORT_LOST_RANKS=''
  [[ $1 == "$CARRIED_ENGINE" ]] || return 0
  engine::lost_host "${MEMBERS_LOG[$1]}"
  host=$REPLY
  [[ -n $host ]] || return 0
  for i in "${!PLAN_HOSTS[@]}"; do # Open MPI 4 has the name that the user wrote, 5 the host's own, without its domain
    own=${MEMBERS_HOST[${PLAN_RANKS[i]}]-}
    if [[ $host == "${PLAN_HOSTS[i]#*@}" || $host == "$own" || $host == "${own%%.*}" ]]; then
      REPORT_LOST_RANKS+=" ${PLAN_RANKS[i]}" named=${PLAN_HOSTS[i]#*@}
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

# report::stacks: writes every rank's stack to rank_N.stack beside its log, and a summary to stderr.
report::stacks() {
  local name line
  local -a processes=()
  for name in "${PLAN_RANKS[@]}"; do
    [[ -n ${MEMBERS_STATUS[$name]-} || -z ${MEMBERS_GROUP[$name]-} ]] || processes+=("$name=${MEMBERS_GROUP[$name]}")
  done
  if ((${#processes[@]} == 0)); then
    [[ -z $CARRIED_ENGINE ]] || report::_carried_stacks
    return 0
  fi
  while IFS= read -r line; do
    log::say "$line"
  done < <(supervise::close_pipes && exec "$PYTHON" "$LAUNCH_ROOT/tools/diagnosis/stacks.py" "$PLAN_LOG_DIR" "${processes[@]}")
}

# The same for ranks that an engine started: their agents report it. Ranks at the same place share a line.
report::_carried_stacks() {
  local name place
  local -a order=()
  local -A at=()
  supervise::ask_stacks
  for name in "${PLAN_RANKS[@]}"; do
    place=${CARRIED_STACK[$name]-}
    [[ -n $place ]] || continue
    [[ -n ${at[$place]-} ]] || order+=("$place")
    at[$place]+=" $name"
  done
  for place in ${order[@]+"${order[@]}"}; do
    # shellcheck disable=SC2086 # a list of numbers
    log::named rank ${at[$place]}
    log::say "$REPLY: $place"
  done
}

# report::print: on stderr, the table of ranks, then the end of the log of the member that failed first.
report::print() {
  ((${#MEMBERS_NAMES[@]})) || return 0
  [[ -n $LOG_QUIET && -z $SUPERVISE_FIRST ]] || report::_table
  if [[ -n $SUPERVISE_FIRST ]]; then
    ! stopping::keeps_going || report::_failed
    report::_log "$SUPERVISE_FIRST"
    report::_tail "$REPLY"
  fi
  plan::logs_problem
  [[ -z $REPLY ]] || log::say "$REPLY"
}

# report::_failed: which ranks failed by themselves, where the others went on.
report::_failed() {
  local name failed=''
  ((${#PLAN_RANKS[@]} > 1)) || return 0
  for name in "${PLAN_RANKS[@]}"; do
    failed+=${MEMBERS_FAILED[$name]+ $name}
  done
  [[ -n $failed ]] || return 0
  # shellcheck disable=SC2086 # a list of numbers
  set -- $failed
  log::named rank "$@"
  log::say $"$# of ${#PLAN_RANKS[@]} ranks failed: $REPLY (--keep_going)"
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
  local i name how seconds log key place=''
  local -a order=()
  local -A alike=()
  # shellcheck disable=SC2256 # words of the heading; some are also the names of variables
  ((${#PLAN_HOSTS[@]} == 0)) || report::_cell place 16 $"host"
  # shellcheck disable=SC2256
  report::_row $"rank" $"device" "$place" $"exit" $"time" $"log"
  for i in "${!PLAN_RANKS[@]}"; do
    name=${PLAN_RANKS[i]}
    report::_exit "$name"
    how=$REPLY
    if ((${#PLAN_RANKS[@]} > REPORT_ROWS)) && [[ $name != "$SUPERVISE_FIRST" ]]; then
      [[ -n ${alike[$how]-} ]] || order+=("$how")
      alike[$how]+=" $name"
      continue
    fi
    members::seconds "$name"
    seconds=$REPLY
    [[ $seconds == - ]] || seconds+=' s'
    report::_log "$name"
    log::harmless "$REPLY"
    log=$REPLY
    if [[ -n $place ]]; then
      log::harmless "${PLAN_HOSTS[i]}"
      printf -v place '%-15s ' "$REPLY"
    fi
    report::_row "$name" "${PLAN_DEVICES[i]}" "$place" "$how" "$seconds" "$log"
  done
  for key in ${order[@]+"${order[@]}"}; do
    # shellcheck disable=SC2086 # a list of numbers
    log::named rank ${alike[$key]}
    printf '%s: %s\n' "$key" "$REPLY" >&2 || :
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
  if [[ $1 == "$SUPERVISE_FIRST" ]]; then
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
