#!/usr/bin/env bats
# preflight.sh, and --preflight, in an allocation of a real Slurm of three nodes on this machine.

# bats file_tags=thorough
load helper

setup_file() {
  SLURM=$BATS_FILE_TMPDIR/slurm
  if ! WHY_NOT=$(bash "$BATS_TEST_DIRNAME/../fixtures/slurm.sh" up "$SLURM" 3 2>&1); then
    WHY_NOT=${WHY_NOT:-"no Slurm here"}
  fi
  export SLURM WHY_NOT SLURM_CONF=$SLURM/slurm.conf
}

teardown_file() {
  bash "$BATS_TEST_DIRNAME/../fixtures/slurm.sh" down "$SLURM"
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

@test "preflight.sh in an allocation: a node whose slurmd is gone is named with the reason, and the others are compared" {
  printf 'kill -KILL "$(<%q)"\nexec bash %q/preflight.sh\n' "$SLURM/slurmd.n2.pid" "$SCRIPTS" >inside
  run --separate-stderr salloc --quiet -N 3 bash inside
  [[ $status -eq 78 && $(grep '^  [^ ]' <<<"$output") == '  n2: no answer; '* ]] || fail "$status $output $stderr"
}
