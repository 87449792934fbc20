# shellcheck shell=bash
# Engine "srun": Slurm starts the ranks, as many on each node of the allocation.

# shellcheck source=scripts/lib/engines/relay.sh
source "$LAUNCH_LIB/engines/relay.sh"

ENGINE_NAME=srun

# Beside what its documentation says about each option:
#   --ntasks-per-node, --distribution   without them Slurm may put 3 ranks of 4 on one node
#   --kill-on-bad-exit     the net beneath ours: an agent that dies ends the job
#   --wait=0               else a site's WaitTime ends the others so long after the first rank, though it ended well
#   --input, --output, --error   the way between the agents and us, wherever SLURM_STDOUTMODE would have it lead
#   --cpu-bind=none        as many threads as the trainer wants, on any core of the job
#   --mpi=none             the ranks find each other by MindSpore's scheduler
engine::command() {
  local -r nodes=${PLAN_ENGINE[node_count]} each=${PLAN_ENGINE[per_node]}
  ENGINE_COMMAND=(srun --nodes="$nodes" --ntasks="$((nodes * each))" --ntasks-per-node="$each"
    --nodelist="${PLAN_ENGINE[nodes]}" --distribution=block --kill-on-bad-exit=1 --wait=0 --cpu-bind=none --mpi=none
    --input=all --output=all --error=all --export=ALL --chdir="$PWD" --overlap bash "$LAUNCH_LIB/rank_agent.sh")
  # A number of tasks or a node count of sbatch's own would contradict ours.
  unset SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE SLURM_DISTRIBUTION
  LAUNCH_CONTROL=stdin # srun kills its tasks at once when it gets SIGTERM; words on stdin reach all of them
  # After scancel the agents are done a second before we write the report, see stopping::cancelled.
  local -r kill_wait=${PLAN_ENGINE[kill_wait]}
  LAUNCH_PATIENCE=$((kill_wait > 5 ? kill_wait - 4 : 1))
  export LAUNCH_CONTROL LAUNCH_PATIENCE
}

# engine::order WORD PID: over srun's stdin.
engine::order() {
  bus::say "$ENGINE_ORDERS" "$1"
}

# engine::cancelled: what the supervisor is to hear when an agent was told to end: Slurm does that, by scancel say or
# at the job's limit of time, and kills what is left after its KillWait. In REPLY.
engine::cancelled() {
  local -r kill_wait=${PLAN_ENGINE[kill_wait]}
  REPLY="cancelled $kill_wait Slurm kills what is left after $kill_wait s, its KillWait: the grace time ends before that"
}

# engine::scheduler: MindSpore's scheduler runs on the first node, also when we do not: under salloc the script may
# run on a node for logins.
engine::scheduler() {
  if [[ -n ${PLAN_ENGINE[scheduler_node]-} && ${PLAN_SCHEDULER[0]-srun} != srun ]]; then
    plan::reach_scheduler srun --nodes=1 --ntasks=1 --nodelist="${PLAN_ENGINE[scheduler_node]}" --overlap --mpi=none \
      --cpu-bind=none --output=all --error=all --export=ALL
  fi
}
