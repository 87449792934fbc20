# shellcheck shell=bash
# What mpirun and srun, the engines that start ranks on other hosts, have in common: the relay between the engine
# and the supervisor.
#
# The engine's process is a member of the supervisor, like a rank. Every rank is an agent
# (lib/rank_agent.sh), whose lines about its trainer come through the engine's stdout; the relay puts them
# on the supervisor's bus. Orders go the other way: SIGTERM from the supervisor becomes an order to
# the agents, which have the grace time for their trainers, and not SIGTERM to the engine, which would
# kill them after a time of its own. An engine that does not end is killed with what it left.
#
# The engine's own file has, beside what engine.sh names
#   engine::command    sets ENGINE_COMMAND, all but the trainer
#   engine::order      WORD PID: hands "stop", "stacks", "USR1" or "USR2" on to the ranks of the engine's process PID
#   engine::cancelled  what an agent's "cancelled" means: a line for the bus in REPLY; or nothing, if the ranks'
#                      ends are no failures from then on
#   ENGINE_NAME

ENGINE_COMMAND=() # the engine with its options, up to the agent
ENGINE_ORDERS=''  # a pipe to the engine's stdin

# engine::start: the scheduler, if the plan has one, then the engine.
engine::start() {
  local rank
  LAUNCH_SECRET="launch-$RANDOM$RANDOM$RANDOM" LAUNCH_GRACE=$STOPPING_GRACE
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

# engine::print: for --dry_run, the engine's command; nobody listens to the ranks that it starts.
engine::print() {
  rank_entry::agent_environment "$ENGINE_NAME"
  engine::command
  plan::print_engine "${ENGINE_COMMAND[@]}"
}

# relay::_main BUS: the member: runs the engine, reads what comes from it, hands orders on. The
# environment for the ranks is made here: the launcher's own children do not belong to the job.
relay::_main() {
  local bus pipe engine='' ordered='' word name value told=exit failed=0
  rank_entry::agent_environment "$ENGINE_NAME"
  export LAUNCH_JOB LAUNCH_SECRET LAUNCH_GRACE
  engine::command
  exec {bus}>"$1" {pipe}<> <(:) {ENGINE_ORDERS}<> <(:)
  set -m # a group of its own: the supervisor's signals are for us
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
    elif ! kill -0 "$runner" 2>/dev/null; then
      exit 137 # it was killed and could not say so
    fi
  done
}

# relay::_line LINE: of the engine's own, or, behind the secret, an agent's or the runner's.
relay::_line() {
  if [[ $1 != *"$LAUNCH_SECRET "* ]]; then
    [[ -z $1 ]] || printf '%s\n' "$1"
    return 0
  fi
  local -r line=${1#*"$LAUNCH_SECRET "} # behind the label that the user's own settings may have mpirun or srun write
  read -r word name value <<<"$line"
  case $word in
    engine) engine=$name ;;
    start) bus::say "$bus" began "$name" ;;
    stack | wrote) bus::say "$bus" "$word" "$name" "$value" ;;
    line) printf '%s\n' "${line#"line $name "}" >>"$PLAN_LOG_DIR/rank_$name.log" ;;
    exit)
      bus::say "$bus" "$told" "$name" "$value"
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
    ended) # with 0 though it ended ranks: somebody else did that
      ((name != 0)) || [[ $told == exit ]] || name=$failed
      exit "$name"
      ;;
  esac
}

# relay::_order WORD
relay::_order() {
  [[ $1 != stop ]] || ordered=1
  if [[ -n $engine ]]; then
    engine::order "$1" "$engine"
  elif [[ -n $ordered ]]; then
    exit 143 # not even started; the supervisor sweeps what is left
  fi
}

# relay::_run PIPE: the engine, its stdout in PIPE; what it says on stderr goes to its log. The other
# end of its stdin is the relay's alone, so that it ends with the relay.
relay::_run() {
  local -r pipe=$1
  set -m
  (
    bus::say "$pipe" "$LAUNCH_SECRET" engine "$BASHPID"
    # Opened anew: ssh makes what it gets non-blocking, for all who have the same.
    exec >"/dev/fd/$pipe" <"/dev/fd/$ENGINE_ORDERS" {ENGINE_ORDERS}>&- {pipe}>&- {bus}>&-
    exec "${ENGINE_COMMAND[@]}" "${PLAN_TRAINER[@]}"
  ) &
  set +m
  exec {ENGINE_ORDERS}>&- {bus}>&-
  bus::await "$!"
  printf '\n.%s ended %d\n' "$LAUNCH_SECRET" "$REPLY" >&"$pipe" # the engine's last line may lack its end
}
