# shellcheck shell=bash
# The relay between the supervisor and an engine that starts ranks on other hosts (mpirun, srun).
#
# The engine's process is a member of the job, like a rank. Every rank is an agent (lib/rank_agent.sh). Its lines about
# its trainer arrive on the engine's stdout, and the relay (tools/launch/engines/relay.py) puts them on the supervisor's
# bus. Orders go the other way.
# When the supervisor sends SIGTERM, the relay orders the agents to stop, and they give their trainers the grace time.
# It does not pass SIGTERM to the engine, which would kill the agents after a time of its own. If the engine does not
# end, the supervisor kills it and all that it left.
#
# The engine's own file defines the functions of engine.sh, and
#   engine::command    sets ENGINE_COMMAND: all words before the trainer's
#   engine::cancelled  the line for the bus when an agent says "cancelled", in REPLY; empty if a rank that ends from then
#                      on has not failed
#   ENGINE_NAME

ENGINE_COMMAND=() # the engine with its options, up to the agent
ENGINE_ORDERS=''  # a pipe to the engine's stdin

# engine::start: the scheduler, if the plan has one, then the engine.
engine::start() {
  if ((${#PLAN_SCHEDULER[@]})); then
    engine::scheduler
    supervise::start scheduler "$PLAN_LOG_DIR/scheduler.log" rank_entry::become scheduler "${PLAN_SCHEDULER[@]}"
  fi
  carried::by "$ENGINE_NAME" 3
  supervise::expect_ranks
  supervise::start "$ENGINE_NAME" "$PLAN_LOG_DIR/$ENGINE_NAME.log" relay::_main "/proc/$$/fd/$SUPERVISE_BUS"
}

# engine::print: for --dry_run: the engine's command, without a relay.
engine::print() {
  rank_entry::agent_environment "$ENGINE_NAME"
  engine::command
  dry_run::engine "${ENGINE_COMMAND[@]}"
}

# relay::_main BUS: the engine's member: starts the engine and becomes tools/launch/engines/relay.py, which reads its
# output and passes orders to it. It exports the job's environment here, not in the launcher, whose own children do not
# belong to the job.
relay::_main() {
  local bus pipe cancelled
  rank_entry::agent_environment "$ENGINE_NAME"
  LAUNCH_SECRET="launch-$RANDOM$RANDOM$RANDOM" LAUNCH_GRACE=$STOPPING_GRACE LAUNCH_KEEPS_GOING=$STOPPING_NOTHING
  export LAUNCH_JOB LAUNCH_SECRET LAUNCH_GRACE LAUNCH_KEEPS_GOING
  engine::command
  engine::cancelled
  cancelled=$REPLY
  exec {bus}>"$1" {pipe}<> <(:) {ENGINE_ORDERS}<> <(:)
  set -m # a process group of its own, so that the supervisor's signals reach only the relay
  relay::_run "$pipe" &
  set +m
  trap '' TERM ABRT USR1 USR2 # until relay.py handles them; an order to stop is repeated
  exec "$PYTHON" -I -S "$LAUNCH_ROOT/tools/launch/engines/relay.py" \
    "$!" "$pipe" "$ENGINE_ORDERS" "$bus" "${LAUNCH_CONTROL-}" "$cancelled"
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
