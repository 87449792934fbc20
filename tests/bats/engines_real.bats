#!/usr/bin/env bats
# The engines with real MindSpore ranks on this machine's processors: they form one cluster and train.

# bats file_tags=thorough,trains
load helper

setup() {
  need_mindspore
  PYTHON=$(command -v python)
  TEST_MARK=$BATS_TEST_TMPDIR
  LAUNCH_LOCKS=$BATS_TEST_TMPDIR/locks
  export PYTHON TEST_MARK LAUNCH_LOCKS
  unset RANK_TABLE_FILE
  cd "$BATS_TEST_TMPDIR" || return 1
}

# trains SCRIPT ARGUMENT...: two ranks, one epoch; both end with the same weights.
trains() {
  local -r script=$1
  shift
  ends 0 '*' timeout 300 bash "$SCRIPTS/$script" --device_target CPU "$@" \
    "$PROJECT/configs/mnist/lenet5_digits.yaml" -- -o scheduler.num_epochs=1
  [[ $output == *'loss is '* ]] || fail "$output"
  trained_alike logs/latest/rank_0.log logs/latest/rank_1.log
  nobody_left
}

@test "run_mpirun.sh trains" {
  need mpirun
  trains run_mpirun.sh -n 2
}

@test "run_msrun.sh trains" { trains run_msrun.sh --worker_num 2; }
