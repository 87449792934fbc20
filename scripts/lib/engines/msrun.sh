# shellcheck shell=bash
# Engine "msrun": MindSpore's own launcher starts this host's ranks, and its scheduler on host 0.
#
# msrun would end the ranks with SIGKILL, leave them behind on any signal but INT, and wait for its
# scheduler without limit. So each rank, and the scheduler, is an agent (lib/rank_agent.sh) that puts its
# trainer's start and end on the supervisor's own bus: all of them run on this host, and are signalled by
# the supervisor itself.

ENGINE_COMMAND=()

# engine::start: msrun; what it starts are members, too.
engine::start() {
  SUPERVISE_CARRIER=msrun
  supervise::expect "${PLAN_RANKS[@]}"
  [[ -z ${PLAN_ENGINE[scheduler]-} ]] || supervise::expect scheduler
  supervise::start msrun "$PLAN_RUN_DIR/msrun.log" msrun::_become \
    "/proc/$$/fd/$SUPERVISE_BUS" "/proc/$$/fd/$SUPERVISE_LIFELINE"
}

msrun::_become() {
  LAUNCH_TELL=bus LAUNCH_BUS=$1 LAUNCH_LIFELINE=$2 LAUNCH_GRACE=$SUPERVISE_GRACE
  export LAUNCH_TELL LAUNCH_BUS LAUNCH_LIFELINE LAUNCH_GRACE LAUNCH_JOB
  msrun::_environment
  engine::command
  set +e
  exec "${ENGINE_COMMAND[@]}" "${PLAN_TRAINER[@]}"
}

# engine::print: for --dry_run.
engine::print() {
  local name
  local -a words=()
  msrun::_environment
  engine::command
  for name in $MSRUN_VARIABLES; do
    words+=("$name=${!name}")
  done
  plan::_line export "${words[@]}"
  plan::_line "${ENGINE_COMMAND[@]}" "${PLAN_TRAINER[@]}"
}

readonly MSRUN_VARIABLES='LAUNCH_ENGINE LAUNCH_DEVICES LAUNCH_FOLDER LAUNCH_HOST LAUNCH_EXPORTS LAUNCH_UMASK'

msrun::_environment() {
  local assignment
  LAUNCH_ENGINE=msrun LAUNCH_DEVICES=${PLAN_ENGINE[devices]} LAUNCH_FOLDER=$PWD LAUNCH_EXPORTS=''
  LAUNCH_UMASK=$(umask)
  read -r LAUNCH_HOST </proc/sys/kernel/hostname
  for assignment in "${PLAN_EXPORTS[@]}"; do
    LAUNCH_EXPORTS+="${LAUNCH_EXPORTS:+ }${assignment%%=*}"
  done
  # shellcheck disable=SC2086 # a list of names
  export $MSRUN_VARIABLES
}

# msrun runs "python", "python3" or a file that it gives to python, nothing else; so python it is, which
# becomes bash at once.
engine::command() {
  local python=python
  command -v python >/dev/null || python=python3
  ENGINE_COMMAND=("$PYTHON" -c 'from mindspore.parallel.cluster.run import main; main()'
    --worker_num="${PLAN_ENGINE[world]}" --local_worker_num="${#PLAN_RANKS[@]}"
    --master_addr="$MS_SCHED_HOST" --master_port="$MS_SCHED_PORT" --node_rank="${PLAN_ENGINE[node]}"
    --log_dir="$PLAN_RUN_DIR/msrun" --join=True
    "$python" -S -E -c 'import os, sys; os.execvp(sys.argv[1], sys.argv[1:])' bash "$LAUNCH_LIB/rank_agent.sh")
}
