#!/usr/bin/env bats
# preflight.sh, and --preflight, in an allocation of a real Slurm of three nodes on this machine.

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
  unset PYTHONPATH
}

@test "preflight.sh in an allocation: one step of srun asks all nodes, and one line says so" {
  run --separate-stderr salloc --quiet -N 3 bash "$SCRIPTS/preflight.sh"
  [[ $status -eq 0 && $output == '3 hosts agree; nothing blocks' ]] || fail "$output $stderr"
  [[ $stderr == 'preflight.sh: asking 3 hosts of Slurm job '[0-9]*' by srun' ]] || fail "$stderr"
}

@test "--preflight of run_slurm.sh: srun asks the nodes, and the result is in launch.json" {
  STUB_DO='' run --separate-stderr salloc --quiet -N 3 --ntasks-per-node=1 bash "$SCRIPTS/run_slurm.sh" --device_target CPU --preflight \
    --train_script "$FIXTURES/stub_trainer.py" --grace 2 config.yaml
  [[ $status -eq 0 && $stderr == *'run_slurm.sh: 3 hosts agree; nothing blocks'* ]] || fail "$status $stderr"
  [[ "$(launch_json 'r["preflight"]["verdict"], sorted(r["preflight"]["digests"])')" == "('good', ['n0', 'n1', 'n2'])" ]]
}

# trial NODES ARGUMENT...: a trial on as many nodes of an allocation, with the stand-in for MindSpore.
trial() {
  python -c 'import numpy' || skip 'needs NumPy'
  PYTHONPATH=$FIXTURES/trial_mindspore timeout -k 5 300 salloc --quiet -N "$1" --ntasks-per-node=1 bash "$SCRIPTS/preflight.sh" --trial "${@:2}"
}

@test "preflight.sh --trial in an allocation: srun starts the ranks, and the node that fails is named with Slurm's commands" {
  STUB_TRIAL='n2: exit 3' run --separate-stderr trial 3
  [[ $status -eq 78 && $stderr == *'preflight.sh: the trial starts 3 ranks on 3 hosts: '* ]] || fail "$status: $output $stderr"
  [[ $(grep '^  [^ ]' <<<"$output" | head -n 1) == '  n2: a job on it and n0 fails, jobs without it pass: rank '?' ended with exit code 3' ]] || fail "$output"
  [[ $output == *'The trial of 2 ranks on 2 hosts passed:'*"Commands that leave out n2, not run:
  for the launch: --exclude n2
  for sbatch and salloc: --exclude=n2
  for Slurm: scontrol update nodename=n2 state=drain reason=failed\ a\ trial\ of\ preflight.sh"* && $output != *kubectl* ]] || fail "$output"
}

@test "preflight.sh --trial in an allocation: the node that is slow is named, and nothing else" {
  STUB_TRIAL='n1: slow' run --separate-stderr trial 3 --json
  [[ $status -eq 1 ]] || fail "$status: $output $stderr"
  [[ $(python -c 'import json, sys; r = json.load(sys.stdin)
print([(d["fact"], d["groups"][0]["hosts"]) for d in r["differences"]], [a["for"] for a in r["trial"]["advice"]])' <<<"$output") == "[('trial:matmul', ['n1'])] ['exclude', 'sbatch', 'slurm']" ]] || fail "$output"
}

# bats test_tags=trains
@test "preflight.sh --trial in an allocation: real MindSpore on two nodes joins, reduces, multiplies and reads" {
  need_mindspore
  digits_in data
  run --separate-stderr timeout -k 5 300 salloc --quiet -N 2 bash "$SCRIPTS/preflight.sh" --trial --data data --json
  [[ $status -le 1 ]] || fail "$status: $output $stderr"
  [[ $(python -c 'import json, sys; r = json.load(sys.stdin)["trial"]
print(r["passed"], sorted({f["measure"] for f in r["figures"]}))' <<<"$output") == "['n0', 'n1'] ['allreduce_16m', 'allreduce_1k', 'allreduce_1m', 'join', 'matmul', 'pair_0', 'read']" ]] || fail "$output"
}

# The last one: the node does not come back.
@test "preflight.sh in an allocation: a node whose slurmd is gone is named with the reason, and the others are compared" {
  printf 'kill -KILL "$(<%q)"\nexec bash %q/preflight.sh\n' "$SLURM/slurmd.n2.pid" "$SCRIPTS" >inside
  run --separate-stderr salloc --quiet -N 3 bash inside
  [[ $status -eq 78 && $(grep '^  [^ ]' <<<"$output") == '  n2: no answer; '* ]] || fail "$status $output $stderr"
}
