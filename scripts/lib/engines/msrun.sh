# shellcheck shell=bash
# Engine "msrun": MindSpore's own launcher starts this host's ranks, and its scheduler on host 0.
#
# By itself, msrun ends the ranks with SIGKILL, leaves them running on any signal except INT, and waits for its
# scheduler without limit. So each rank, and the scheduler, is an agent (lib/rank_agent.sh) that writes its trainer's
# start and end to the supervisor's own bus. All of them run on this host, so the supervisor itself signals them.

ENGINE_COMMAND=() # msrun with its options, up to the agent

# engine::start: msrun; the processes that it starts are members, too.
engine::start() {
  local rank
  plogs::make
  carried::by msrun
  for rank in "${PLAN_RANKS[@]}"; do
    supervise::expect "$rank" "$PLAN_LOG_DIR/rank_$rank.log"
  done
  [[ -z ${PLAN_ENGINE[scheduler]-} ]] || supervise::expect scheduler "$PLAN_LOG_DIR/scheduler.log"
  [[ ${PLAN_ENGINE[world]} == "${#PLAN_RANKS[@]}" ]] || judging::share_scheduler
  supervise::start msrun "$PLAN_LOG_DIR/msrun.log" msrun::_become \
    "/proc/$$/fd/$SUPERVISE_BUS" "/proc/$$/fd/$SUPERVISE_LIFELINE"
}

# engine::print: for --dry_run: msrun's command, whose agents get no bus.
engine::print() {
  rank_entry::agent_environment msrun
  engine::command
  dry_run::engine "${ENGINE_COMMAND[@]}"
}

msrun::_become() {
  rank_entry::agent_environment msrun
  LAUNCH_SECRET=bus LAUNCH_BUS=$1 LAUNCH_LIFELINE=$2 LAUNCH_GRACE=$STOPPING_GRACE
  export LAUNCH_SECRET LAUNCH_BUS LAUNCH_LIFELINE LAUNCH_GRACE LAUNCH_JOB
  engine::command
  set +e # bash 4.2 needs it to end with 127 or 126 if exec fails
  exec "${ENGINE_COMMAND[@]}" "${PLAN_TRAINER[@]}"
}

# msrun can only run "python", "python3" or a file with Python. So it runs a Python that execs bash at once. setsid
# moves the scheduler out of msrun's process group; the ranks are already outside of it. msrun sets MS_TOPO_TIMEOUT to
# its own --cluster_time_out.
engine::command() {
  local python=python
  local -a timeout=()
  command -v python >/dev/null || python=python3
  [[ -z ${MS_TOPO_TIMEOUT-} ]] || timeout=(--cluster_time_out="$MS_TOPO_TIMEOUT")
  ENGINE_COMMAND=("$PYTHON" -c 'from mindspore.parallel.cluster.run import main; main()'
    --worker_num="${PLAN_ENGINE[world]}" --local_worker_num="${#PLAN_RANKS[@]}"
    --master_addr="$MS_SCHED_HOST" --master_port="$MS_SCHED_PORT" --node_rank="${PLAN_ENGINE[node]}"
    --log_dir="$PLAN_LOG_DIR/msrun" --join=True ${timeout[@]+"${timeout[@]}"}
    "$python" -S -E -c 'import os, sys; os.getpid() == os.getsid(0) or os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])' bash "$LAUNCH_LIB/rank_agent.sh")
}
