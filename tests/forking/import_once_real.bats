#!/usr/bin/env bats
# --import_once with the real MindSpore: the same losses, and to each rank its own device.

# bats file_tags=thorough,trains
load ../helper

setup() {
  setup_training
  need_mindspore
}

# losses_of SCRIPT WORD...: what rank 0 prints of the losses of two ranks that train for an epoch, and its accuracy
losses_of() {
  local -r script=$1
  shift
  ends 0 '*' timeout 300 bash "$SCRIPTS/$script" --device_target CPU -n 2 --console none "$@" \
    "$PROJECT/configs/mnist/lenet5_digits.yaml" -- -o scheduler.num_epochs=1 system.log_interval=1 || return
  [[ $stderr != *'imports for itself'* ]] || fail "$stderr" || return
  grep -o 'step: [0-9]*, loss is .*\|accuracy.*' logs/latest/rank_0.log
}

@test "real MindSpore: the losses of LeNet-5 are the same to the last digit" {
  losses_of launch.sh >own.txt
  losses_of launch.sh --import_once >once.txt
  [[ $(grep -c loss own.txt) -gt 20 ]]
  diff own.txt once.txt
}

@test "real MindSpore: each rank has its own device, also in DEVICE_ID after init(), and may choose another" {
  printf '%s\n' 'import os' 'import mindspore' 'from mindspore.communication import init' 'init()' \
    'print("has", mindspore.get_context("device_id"), os.environ["DEVICE_ID"], os.environ["RANK_ID"])' >device.py
  ends 0 '*' timeout 300 bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 --console none --import_once device.py
  [[ "$(grep -h '^has' logs/latest/rank_{0,1}.log)" = $'has 0 0 0\nhas 1 1 1' ]] || fail "$(head logs/latest/rank_*.log)"
  sed -i 's/^init()/mindspore.set_context(device_id=int(os.environ["RANK_ID"]) + 2)/' device.py
  ends 0 '*' timeout 300 bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 --console none --import_once device.py
  [[ "$(grep -h '^has' logs/latest/rank_{0,1}.log)" = $'has 2 0 0\nhas 3 1 1' ]] || fail "$(head logs/latest/rank_*.log)"
}

@test "real MindSpore: the losses are the same under mpirun, which gives each rank numbers that MindSpore reads at its import" {
  need mpirun
  losses_of run_mpirun.sh >own.txt
  losses_of run_mpirun.sh --import_once >once.txt
  [[ $(grep -c loss own.txt) -gt 20 ]]
  diff own.txt once.txt
}

@test "real MindSpore: under mpirun each rank has its own device and number, and hears what MindSpore says of them" {
  need mpirun
  printf '%s\n' 'import os' 'import mindspore' 'print("has", mindspore.get_context("device_id"), os.environ["DEVICE_ID"], os.environ["RANK_ID"], os.environ["RANK_SIZE"])' \
    'from mindspore.communication import init, get_rank' 'init()' 'print("is", get_rank())' >device.py
  local way
  for way in '' --import_once; do
    GLOG_v=2 ends 0 '*' timeout 300 bash "$SCRIPTS/run_mpirun.sh" --device_target CPU -n 2 --console none ${way:+"$way"} device.py
    [[ $stderr != *'imports for itself'* ]] || fail "$stderr"
    [[ "$(grep -h '^has\|^is' logs/latest/rank_{0,1}.log)" = $'has 0 0 0 2\nis 0\nhas 1 1 1 2\nis 1' ]] || fail "$(head logs/latest/rank_*.log)"
    grep -q 'both dynamic cluster and OpenMPI' logs/latest/rank_1.log || fail "$(<logs/latest/rank_1.log)"
  done
}
