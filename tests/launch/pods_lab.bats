#!/usr/bin/env bats
# run_pod.sh as a container has it: process 1 of its own, an address of its own, a mount of its own, and a kubelet's signals.

# bats file_tags=thorough
load ../helper
load ../hosts
load ../lab/lab

setup() {
  pods_setup
}

teardown() {
  lab_down
  end_left_over
}

# ---- process 1, without a network of its own ---------------------------------------------------------

# contained NUMBER [NAME=VALUE...] [-- PROGRAM...]: pod NUMBER, alone in its job, whose launcher is process 1 of a container;
# FIRST is its process id outside
contained() {
  local -r number=$1
  local -a variables=()
  shift
  while (($#)) && [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  need nsenter
  need_namespaces 'for a process 1' --pid --fork --mount-proc
  stubbed run_pod.sh --device_target CPU --log_dir "logs$number" config.yaml
  (($# == 0)) || STUBBED=(bash "$SCRIPTS/run_pod.sh" --device_target CPU --log_dir "logs$number" "${@:2}")
  : >"stdout$number"
  : >"stderr$number"
  set -m
  env MS_LOCAL_WORKER=2 "POD_IP=127.0.0.$((number + 2))" ${variables[@]+"${variables[@]}"} unshare --pid --fork --mount-proc --kill-child=KILL "${STUBBED[@]}" \
    >"stdout$number" 2>"stderr$number" 3>&- &
  set +m
  PIDS[number]=$!
  eventually first_of "${PIDS[number]}"
}

# first_of PID: the child of unshare, in FIRST
first_of() {
  FIRST=$(pgrep -P "$1")
}

# inside COMMAND...: in the container's processes
inside() {
  nsenter --target "$FIRST" --pid --mount -- "$@"
}

# strangers_are_gone: no zombie is left in the container
strangers_are_gone() {
  [[ $(inside ps -eo stat=) != *Z* ]]
}

@test "process 1 reaps orphans, and SIGTERM of the kubelet gives the ranks time to save" {
  export STUB_DO='0: wait; 1: wait'
  contained 0
  eventually ranks_up 0 1
  inside bash -c 'for i in 1 2 3; do ( (sleep 0.1 &) ); done'
  eventually inside sh -c '! pgrep -x sleep'
  eventually strangers_are_gone # bash 5.2 reaps when its read -t ends
  [[ "$(inside ps -ww -o args= -p 1)" == *run_pod.sh* ]]
  kill -TERM "$FIRST"
  pod_ended 0 143 '*SIGTERM: stopping all ranks*exit 143*'
}

@test "a trainer that handles SIGTERM has the time to save a checkpoint" {
  cat >saves.py <<'END'
import os, signal, sys, time

rank = os.environ["RANK_ID"]

def save(*_):
    time.sleep(2)  # as long as writing takes
    open(f"checkpoint_{rank}", "w").close()
    sys.exit(0)

signal.signal(signal.SIGTERM, save)
open(f"ready_{rank}", "w").close()
while True:
    signal.pause()
END
  contained 0 -- saves.py
  eventually test -e ready_0 -a -e ready_1
  kill -TERM "$FIRST"
  pod_ended 0 143 '*SIGTERM: stopping all ranks*'
  [[ -e checkpoint_0 && -e checkpoint_1 ]]
}

@test "process 1 that waits for its rank table heeds SIGTERM" {
  contained 0 "RANK_TABLE_FILE=$TABLE"
  eventually says 0 waiting:
  kill -TERM "$FIRST"
  pod_ended 0 143 '*SIGTERM: no rank has started yet*'
}

@test "SIGKILL of process 1 leaves nothing" {
  export STUB_DO='0: children; 1: ignore TERM'
  contained 0
  eventually ranks_up 0 1
  kill -KILL "$FIRST"
  eventually gone "${PIDS[0]}"
  eventually nobody_left
}

# ---- two pods on two hosts of the lab ----------------------------------------------------------------

# The rank table is where MindCluster mounts it, but below /run, which each host has for itself.
LAB_TABLE=/run/user/serverid/devindex/config/hccl.json

# mounted HOST: what comes on stdin is the rank table of this host's pod
mounted() {
  "$LAB_SH" root "$1" bash -c "mkdir -p ${LAB_TABLE%/*} && cat >$LAB_TABLE"
}

# lab_pod HOST [WORD...]: the pod on a host, as process 1 of a container there; WORD is for the launcher
lab_pod() {
  local -r number=$1
  : >"stdout$number"
  : >"stderr$number"
  set -m
  "$LAB_SH" root "$number" env "POD_IP=10.77.0.$((number + 1))" "RANK_TABLE_FILE=$LAB_TABLE" MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 \
    "MS_NODE_RANK=$number" unshare --pid --fork --mount-proc --kill-child=KILL \
    bash "$SCRIPTS/run_pod.sh" --device_target CPU --log_dir "logs$number" "${@:2}" >"stdout$number" 2>"stderr$number" 3>&- &
  set +m
  PIDS[number]=$!
}

# first_on HOST SIGNAL: a signal for process 1 of the container on this host, as the kubelet sends it
first_on() {
  "$LAB_SH" root "$1" bash -c 'kill -s "$1" $(pgrep -P "$(pgrep -x unshare)")' - "$2"
}

# stub_pods: both pods with the stub trainer, of which all ranks run
stub_pods() {
  lab_up 2
  table 10.77.0.1 10.77.0.2 | tee >(mounted 1) | mounted 0
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait'
  lab_pod 0 --train_script "$FIXTURES/stub_trainer.py" config.yaml
  lab_pod 1 --train_script "$FIXTURES/stub_trainer.py" config.yaml
  eventually ranks_up 0 1 2 3
}

@test "lab: the kubelet ends a pod by SIGTERM, then the other ends at once" {
  stub_pods
  first_on 1 TERM
  pod_ended 1 143 '*SIGTERM: stopping all ranks*exit 143*'
  pod_ended 0 143 '*10.77.0.2: SIGTERM has stopped its launcher; stopping the ranks of this host*'
}

@test "lab: a pod is killed: the other ends at once, with 255, and names it" {
  stub_pods
  first_on 1 KILL
  pod_ended 0 255 '*10.77.0.2: its launcher is disconnected: *; stopping the ranks of this host*exit 255*'
}

@test "lab: the node of a pod is cut off: the other ends, and names it" {
  stub_pods
  "$LAB_SH" link 1 down
  pod_ended 0 255 '*10.77.0.2: its launcher is disconnected: Connection timed out; stopping the ranks of this host*exit 255*'
}

@test "lab: the operator moves the job: both pods end with 138" {
  stub_pods
  printf '{"status": "initializing"}' | tee >(mounted 1) | mounted 0
  pod_ended 0 138 '*is "initializing", not "completed"; the job moves, and the operator starts it again*'
  pod_ended 1 138 '*'
}

@test "lab: ascend-operator's table for 950 nodes starts the job, and ends it when the job moves" {
  lab_up 2
  printf '{"status": "initializing", "version": "2.0"}' | tee >(mounted 1) | mounted 0
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait'
  MS_SCHED_HOST=10.77.0.1 lab_pod 0 --train_script "$FIXTURES/stub_trainer.py" config.yaml
  MS_SCHED_HOST=10.77.0.1 lab_pod 1 --train_script "$FIXTURES/stub_trainer.py" config.yaml
  eventually says 0 waiting:
  table_950 | tee >(mounted 1) | mounted 0
  eventually ranks_up 0 1 2 3
  [[ "$(places RANK_ID DEVICE_ID SERVER_ID MS_SCHED_HOST)" = $'0 0 0 10.77.0.1\n1 1 0 10.77.0.1\n2 0 1 10.77.0.1\n3 1 1 10.77.0.1' ]]
  printf '{"status": "initializing", "version": "2.0"}' | tee >(mounted 1) | mounted 0
  pod_ended 0 138 '*is "initializing", not "completed"; the job moves, and the operator starts it again*'
  pod_ended 1 138 '*'
}

# bats test_tags=trains
@test "lab: real MindSpore: two pods of two ranks train together, from the rank table" {
  train_for_real
  digits_in digits
  lab_up 2
  printf '{"status": "initializing"}' | tee >(mounted 1) | mounted 0
  for host in 0 1; do
    DATA_PATH=$PWD/digits lab_pod "$host" "$PROJECT/configs/mnist/lenet5_digits.yaml" -- -o scheduler.num_epochs=1
  done
  eventually says 0 waiting:
  table 10.77.0.1 10.77.0.2 | tee >(mounted 1) | mounted 0
  for host in 0 1; do
    timeout 300 tail --pid="${PIDS[host]}" -f /dev/null
    pod_ended "$host" 0 '*'
  done
  trained_alike logs0/latest/rank_0.log logs1/latest/rank_3.log
  [[ "$(<stdout0)" == *'loss is '* && ! -s stdout1 ]]
}
