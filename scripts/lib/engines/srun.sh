# shellcheck shell=bash
# Engine "srun": Slurm starts the ranks, the same number on each node of the allocation.

# shellcheck source=scripts/lib/engines/relay.sh
source "$LAUNCH_LIB/engines/relay.sh"

ENGINE_NAME=srun

# Why each option is there; Slurm's documentation says what it does:
#   --ntasks-per-node, --distribution   without them Slurm may put 3 ranks of 4 on one node
#   --kill-on-bad-exit     a second safety net: an agent that dies ends the job
#   --wait=0               else a site's WaitTime would end the other ranks some time after the first one succeeded
#   --input, --output, --error   connect the agents to us; they override SLURM_STDOUTMODE and its like
#   --cpu-bind=none        the trainer's threads may run on every core of the job
#   --mpi=none             the ranks find each other through MindSpore's scheduler
engine::command() {
  local -r nodes=${PLAN_ENGINE[node_count]} each=${PLAN_ENGINE[per_node]}
  local kill=1
  ! engine::bears_failures || kill=0
  ENGINE_COMMAND=(srun --nodes="$nodes" --ntasks="$((nodes * each))" --ntasks-per-node="$each"
    --nodelist="${PLAN_ENGINE[nodes]}" --distribution=block --kill-on-bad-exit="$kill" --wait=0 --cpu-bind=none --mpi=none
    --input=all --output=all --error=all --export=ALL --chdir="$PWD" --overlap bash "$LAUNCH_LIB/rank_agent.sh")
  # sbatch's own numbers of tasks, and its distribution, would contradict ours.
  unset SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE SLURM_TASKS_PER_NODE SLURM_DISTRIBUTION
  LAUNCH_CONTROL=stdin # on SIGTERM, srun kills its tasks at once; a line on its stdin reaches all of them
  # After scancel the agents must finish a second before we write the report, see stopping::cancelled.
  local -r kill_wait=${PLAN_ENGINE[kill_wait]}
  LAUNCH_PATIENCE=$((kill_wait > 5 ? kill_wait - 4 : 1))
  export LAUNCH_CONTROL LAUNCH_PATIENCE
}

# engine::cancelled: the supervisor's event, in REPLY, when Slurm ordered an agent to end: after scancel, or at the
# job's time limit. Slurm kills what is left after its KillWait.
engine::cancelled() {
  local -r kill_wait=${PLAN_ENGINE[kill_wait]}
  REPLY="cancelled $kill_wait "$"Slurm kills what is left after $kill_wait s, its KillWait: the grace time ends before that"
}

# engine::lost_host LOG: the node that Slurm has lost, or that does not take its part of a step.
engine::lost_host() {
  local line
  REPLY=''
  while IFS= read -r line; do
    case $line in
      *'error: Node failure on '*) REPLY=${line##* on } && return 0 ;;
      *'error: Task launch for '*' failed on node '*': Communication connection failure'*)
        REPLY=${line#* failed on node } && REPLY=${REPLY%%:*} && return 0
        ;;
    esac
  done < <(tr -d '\r' 2>/dev/null <"$1")
}

# engine::knows_hosts: Slurm knows the states of all nodes, and may not say it in srun's log.
engine::knows_hosts() { :; }

# engine::scheduler: MindSpore's scheduler runs on the allocation's first node. This script may run elsewhere: under
# salloc, on a login node.
engine::scheduler() {
  if [[ -n ${PLAN_ENGINE[scheduler_node]-} && ${PLAN_SCHEDULER[0]-srun} != srun ]]; then
    plan::reach_scheduler srun --nodes=1 --ntasks=1 --nodelist="${PLAN_ENGINE[scheduler_node]}" --overlap --mpi=none \
      --cpu-bind=none --output=all --error=all --export=ALL
  fi
}
