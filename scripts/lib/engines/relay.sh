# shellcheck shell=bash
# The relay between the supervisor and an engine that starts ranks on other hosts (mpirun, srun).
#
# The engine's process is a member of the job, like a rank. Every rank is an agent (lib/rank_agent.sh). Its lines about
# its trainer arrive on the engine's stdout, and the relay puts them on the supervisor's bus. Orders go the other way.
# When the supervisor sends SIGTERM, the relay orders the agents to stop, and they give their trainers the grace time.
# It does not pass SIGTERM to the engine, which would kill the agents after a time of its own. If the engine does not
# end, the supervisor kills it and all that it left.
#
# The engine's own file defines the functions of engine.sh, and
#   engine::command    sets ENGINE_COMMAND: all words before the trainer's
#   engine::order      WORD PID: passes "stop", "stacks", "USR1" or "USR2" to the ranks of the engine's process PID
#   engine::cancelled  handles an agent's "cancelled": a line for the bus in REPLY; empty if a rank that ends from then
#                      on has not failed
#   ENGINE_NAME

ENGINE_COMMAND=() # the engine with its options, up to the agent
ENGINE_ORDERS=''  # a pipe to the engine's stdin

# engine::start: the scheduler, if the plan has one, then the engine.
engine::start() {
  local rank
  if ((${#PLAN_SCHEDULER[@]})); then
    engine::scheduler
    supervise::start scheduler "$PLAN_LOG_DIR/scheduler.log" rank_entry::become scheduler "${PLAN_SCHEDULER[@]}"
  fi
  carried::by "$ENGINE_NAME" 3
  for rank in "${PLAN_RANKS[@]}"; do
    supervise::expect "$rank" "$PLAN_LOG_DIR/rank_$rank.log"
  done
  supervise::start "$ENGINE_NAME" "$PLAN_LOG_DIR/$ENGINE_NAME.log" relay::_main "/proc/$$/fd/$SUPERVISE_BUS"
}

# engine::print: for --dry_run: the engine's command, without a relay.
engine::print() {
  rank_entry::agent_environment "$ENGINE_NAME"
  engine::command
  plan::print_engine "${ENGINE_COMMAND[@]}"
}

# relay::_main BUS: the engine's member: runs the engine, reads its output, passes orders to it. It exports the job's
# environment here, not in the launcher, whose own children do not belong to the job.
relay::_main() {
  local bus pipe engine='' ordered='' word name value told=exit failed=0 heard=0
  rank_entry::agent_environment "$ENGINE_NAME"
  LAUNCH_SECRET="launch-$RANDOM$RANDOM$RANDOM" LAUNCH_GRACE=$STOPPING_GRACE LAUNCH_KEEPS_GOING=$STOPPING_NOTHING
  export LAUNCH_JOB LAUNCH_SECRET LAUNCH_GRACE LAUNCH_KEEPS_GOING
  engine::command
  exec {bus}>"$1" {pipe}<> <(:) {ENGINE_ORDERS}<> <(:)
  set -m # a process group of its own, so that the supervisor's signals reach only the relay
  relay::_run "$pipe" &
  set +m
  local -r runner=$!
  trap 'relay::_order stop' TERM
  trap 'relay::_order stacks' ABRT
  trap 'relay::_order USR1' USR1
  trap 'relay::_order USR2' USR2
  while :; do
    if bus::next "$pipe" 1; then
      relay::_line "$REPLY"
    elif ! kill -CONT "$runner" 2>/dev/null; then # not 0: it may have been stopped
      exit 137                                    # it was killed and could not write "ended"
    fi
  done
}

# relay::_line LINE: handles one line: with the secret it is from an agent or the runner, else from the engine itself.
relay::_line() {
  local line=''
  [[ $1 != *"$LAUNCH_SECRET "* ]] || line=${1#*"$LAUNCH_SECRET "} # mpirun or srun may write a label in front
  word=${line%% *} value=${line#"${line%% *}"}
  value=${value# } name=${value%% *}
  value=${value#"$name"} value=${value# }
  if [[ -z $line || $name == *[!0-9]* || ($word == exit && ($value == *[!0-9]* || -z $value)) ]]; then
    [[ -z $1 ]] || printf '%s\n' "$1" || : # the disk of its log may be full
    return 0
  fi
  case $word in
    engine) engine=$name ;;
    start) bus::say "$bus" began "$name" "${value##* }" ;; # the agent's host
    stack | wrote) bus::say "$bus" "$word" "$name" "$value" ;;
    line) { printf '%s\n' "$value" >>"$PLAN_LOG_DIR/rank_$name.log"; } || : ;;
    exit)
      bus::say "$bus" "$told" "$name" "$value"
      heard=$((heard + 1))
      ((value == 0)) || failed=$value
      ;;
    cancelled)
      engine::cancelled
      if [[ -n $REPLY ]]; then
        bus::say "$bus" "$REPLY"
      elif [[ -z $ordered ]]; then
        told=was
      fi
      ;;
    ended)
      ((name != 0)) || relay::_why_0
      exit "$name"
      ;;
  esac
}

# relay::_why_0: the engine has ended with 0. If it did so although somebody ended ranks, or although it has lost a host,
# as Open MPI 5 does, then `name` gets a status that says so.
relay::_why_0() {
  [[ $told == exit ]] || name=$failed
  if ((name == 0 && heard < ${#PLAN_RANKS[@]})); then
    engine::lost_host "$PLAN_LOG_DIR/$ENGINE_NAME.log"
    [[ -z $REPLY ]] || name=255
  fi
}

relay::_order() {
  [[ $1 != stop ]] || ordered=1
  if [[ -n $engine ]]; then
    engine::order "$1" "$engine"
  elif [[ -n $ordered ]]; then
    exit 143 # the engine has not started; the supervisor kills what is left
  fi
}

# relay::_run PIPE: runs the engine, its stdout in PIPE, its stderr in its log. Only the relay holds the other end of
# the engine's stdin, so that it closes when the relay ends.
relay::_run() {
  local -r pipe=$1
  set -m
  (
    bus::say "$pipe" "$LAUNCH_SECRET" engine "$BASHPID"
    # The pipes are opened again: ssh sets O_NONBLOCK on its files, for every process that shares the open file.
    exec >"/dev/fd/$pipe" <"/dev/fd/$ENGINE_ORDERS" {ENGINE_ORDERS}>&- {pipe}>&- {bus}>&-
    exec "${ENGINE_COMMAND[@]}" "${PLAN_TRAINER[@]}"
  ) &
  set +m
  exec {ENGINE_ORDERS}>&- {bus}>&-
  bus::await "$!"
  printf '\n.%s ended %d\n' "$LAUNCH_SECRET" "$REPLY" >&"$pipe" # the engine's last line may lack its newline
}
