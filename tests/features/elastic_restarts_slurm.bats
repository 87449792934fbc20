#!/usr/bin/env bats
# A job that loses a node goes on without it, or with a spare one: a real Slurm of three nodes on this machine.

# bats file_tags=thorough
load ../helper
load ../hosts

setup_file() {
  slurm_up 3
}

teardown_file() {
  slurm_down
}

setup() {
  [[ -z $WHY_NOT ]] || skip "$WHY_NOT"
  setup_world
  HCCN=()
  eventually all_idle # also after a test that has set one down
}

# allocated N ARGUMENT...: run_slurm.sh on three nodes of one rank, in the background, until its N ranks run; the
# allocation outlives a node.
allocated() {
  set -m
  salloc --quiet --no-kill -N 3 --ntasks-per-node=1 bash "$SCRIPTS/run_slurm.sh" --device_target CPU \
    --train_script "$FIXTURES/stub_trainer.py" --grace 2 --max_restarts 2 "${@:2}" config.yaml \
    >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- &
  LAUNCHER=$!
  set +m
  # shellcheck disable=SC2046 # a list of numbers
  eventually ranks_up $(seq 0 $(($1 - 1)))
}

teardown() {
  [[ ! -e lost_slurmd ]] || kill -CONT "$(<lost_slurmd)"
  [[ ! -e dead_slurmd ]] || env -u TEST_MARK slurmd -N "$(<dead_slurmd)" -f "$SLURM_CONF" 3>&-
  end_left_over
}

all_idle() {
  [[ "$(sinfo -h -o %T)" == idle ]]
}

# loses NODE: nothing of it runs any more, and Slurm takes it for lost.
loses() {
  cp "$SLURM/slurmd.$1.pid" lost_slurmd
  kill -STOP "$(<lost_slurmd)" # else it would say that the node is well
  scontrol update "nodename=$1" state=down reason='broken fan'
  end_of "$1"
}

# end_of NODE: kills what this test runs there, first Slurm's own processes of its steps: these would report the end.
end_of() {
  local pid parent
  local -a found=() steps=()
  for pid in $(left_over | xargs grep -lszxF -- "SLURMD_NODENAME=$1" | cut -d / -f 3); do
    found+=("$pid")
    parent=$(ps -o ppid= -p "$pid") || continue
    parent=${parent//[[:space:]]/}
    [[ $(ps -o comm= -p "$parent") != slurmstepd ]] || steps+=("$parent")
  done
  kill -KILL ${steps[@]+"${steps[@]}"} "${found[@]}" 2>/dev/null || true
}

@test "a node goes down: the job continues without it, and names it with Slurm's reason" {
  export STUB_DO='0: first wait; 1: first wait; 2: first wait'
  allocated 3
  loses n1 # Slurm ends the whole step: sometimes a rank of another node is seen to end first
  ended 0 "*: n1 (rank 1) is excluded from this job from now on: Slurm says: down*broken fan; *
*: the job continues with 2 ranks on 2 hosts; it had 3 ranks*: restart 1 of 2 in 1 s*: the job continued without n1 (*"
  launch_json_fits
  [[ "$(launch_json '[rank["host"] for rank in r["ranks"]]')" = "['n0', 'n2']" ]]
  [[ "$(recorded rank_1 '[r["env"][n] for n in ("SLURMD_NODENAME", "RANK_SIZE", "MS_WORKER_NUM", "RESUME_RANK_SIZES")]')" = "['n2', '2', '2', '3']" ]]
}

@test "the first node goes down, with MindSpore's scheduler: the scheduler is on another node, and a spare one gets the ranks" {
  export STUB_DO='0: first wait, await scheduler; 1: first wait, await scheduler'
  allocated 2 --spare 1
  grep -q ': spare, in case a host is lost: n2' "$BATS_TEST_TMPDIR/stderr"
  eventually test -e "$STUB_OUT/scheduler.json"
  [[ "$(recorded scheduler 'r["SLURMD_NODENAME"]')" = n0 ]]
  rm "$STUB_OUT/scheduler.json" # the next attempt's ranks wait for another
  loses n0
  ended 0 "*: the job continues with 2 ranks on 2 hosts; spare hosts now in use: n2*"
  [[ "$(launch_json '[rank["host"] for rank in r["ranks"]]')" = "['n2', 'n1']" ]]
  [[ "$(recorded scheduler 'r["SLURMD_NODENAME"]')" = n2 ]]
}

@test "a node that Slurm does not miss for minutes: the next attempt finds that it takes no step, and the one after goes without it" {
  export STUB_DO='0: first wait; 1: first wait; 2: first wait'
  [[ :$PATH: == */sbin:* ]] || PATH+=:/usr/sbin:/sbin
  allocated 3
  echo n1 >dead_slurmd
  kill -KILL "$(<"$SLURM/slurmd.n1.pid")"
  end_of n1
  kill -KILL "$(recorded rank_0 'r["pid"]')" # as a rank does that hears no more of the others
  ended 0 '*: restart 1 of 2 in 1 s*: the host n1 (rank 1) is lost after *: n1 (rank 1) is excluded from this job from now on: *: restart 2 of 2 in 2 s*'
  [[ "$(launch_json '[rank["host"] for rank in r["ranks"]], r["lost_hosts"][0]["attempt"]')" = "(['n0', 'n2'], 1)" ]]
}

@test "fewer ranks than --min_ranks: the job ends and says why" {
  export STUB_DO='0: first wait; 1: first wait; 2: first wait'
  allocated 3 --min_ranks 3
  loses n2
  ended
  [[ $status -ne 0 && $stderr == *': no restart 1: only 2 ranks can still run, but --min_ranks is 3; lost: n2; '* ]] || fail "$stderr"
}

@test "a rank that fails is no lost node: it is started again where it was; a node that fails again and again is named" {
  export STUB_DO='0: wait; 1: await 0 2, exit 3; 2: wait'
  allocated 3
  ended 3 '*: in each of the 3 failed attempts, a rank on n1 failed first; check that host, or exclude it*'
  [[ $stderr != *'out of this job'* && "$(launch_json '[rank["host"] for rank in r["ranks"]], "lost_hosts" in r')" = "(['n0', 'n1', 'n2'], False)" ]] || fail "$stderr"
}
