#!/usr/bin/env bats
# The engines with real MindSpore ranks on this machine's processors: they form one cluster and train.

# bats file_tags=thorough,trains
load ../helper

setup() {
  need_mindspore
  PYTHON=$(command -v python)
  TEST_MARK=$BATS_TEST_TMPDIR
  LAUNCH_LOCKS=$BATS_TEST_TMPDIR/locks
  export PYTHON TEST_MARK LAUNCH_LOCKS
  unset RANK_TABLE_FILE DEVICE_NUM
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

@test "MNIST by mpirun, as its tutorial types it: DATA_PATH is the folder of the two files to train on" {
  need mpirun
  import_once
  digits_in digits
  mkdir MNIST_Data
  ln -s ../digits/train MNIST_Data/train
  echo localhost slots=2 >hostfile
  export DATA_PATH=./MNIST_Data/train/
  for words in 'run_mpirun_1.sh -n 2 --device_target CPU' 'run_mpirun_2.sh --device_target CPU ./hostfile'; do
    # shellcheck disable=SC2086 # several words
    ends 0 '*' timeout 300 bash "$SCRIPTS/"$words -- -o scheduler.num_epochs=1
    [[ $output == *"DATA_PATH $PWD/MNIST_Data/train has no held-out data, so the accuracy is not measured"*'epoch: 1 step: 22, loss is '* ]] || fail "$output"
  done
}

@test "run_msrun.sh trains" { trains run_msrun.sh --worker_num 2; }

@test "msrun by itself trains with our trainer, and its scheduler knows when the ranks have left" {
  local port
  digits_in data
  port=$(python -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
  DATA_PATH=data run timeout 300 msrun --worker_num 2 --local_worker_num 2 --join True --master_port "$port" \
    --log_dir msrun "$PROJECT/tools/train.py" --config "$PROJECT/configs/mnist/lenet5_digits.yaml" \
    -o system.device_target=CPU scheduler.num_epochs=1
  [[ $status -eq 0 ]] || fail "$status: $output"
  trained_alike msrun/worker_0.log msrun/worker_1.log
  grep -qx 'mindspore_scheduler.py: all ranks have left' msrun/scheduler.log || fail "$(<msrun/scheduler.log)"
  nobody_left
}

@test "a trainer that divides by DEVICE_NUM trains as it would by the number of ranks" {
  train_for_real
  printf 'system:\n  distribute: True\n' >config.yaml
  ends 0 '*' timeout 300 bash "$SCRIPTS/ascend2p.sh" --device_target CPU --train_script "$FIXTURES/divides_by_device_num.py" config.yaml
  [[ "$(grep -h '^the weight' logs/latest/rank_[01].log)" = $'the weight is -1.00\nthe weight is -1.00' ]] || fail "$(cat logs/latest/*.log)"
}
