#!/usr/bin/env bats
# What stays of a launch: its outcome in launch.json, and why it failed, also where somebody is in the way.

load ../helper

setup() {
  setup_world
  export STUB_DO='0: wait; 1: await 0, exit 3'
}

# failing: rank 1 has failed, rank 0 runs; the process that will explain it is there, in EXPLAINER.
failing() {
  launch_behind ascend2p.sh --keep_going --grace 1 config.yaml
  eventually pgrep -P "$LAUNCHER" -f mindspore-launch-report
  EXPLAINER=$(pgrep -P "$LAUNCHER" -f mindspore-launch-report)
}

# explained: ends the job; launch.json has its outcome, and the user knows why it failed
explained() {
  end_by TERM 3 '*rank_1.log has no Python exception*exit 3; logs and launch.json are in *'
  [[ "$(launch_json 'r["outcome"]["members"]["1"]["status"], r["outcome"]["exit"], r["outcome"]["stopped_by"]')" = "(3, 3, 'SIGTERM')" ]]
  [[ "$(launch_json 'r["outcome"]["first_failure"], "diagnosis" in r["outcome"]')" = "('1', True)" ]]
  [[ $stderr != *'the outcome is not'* && $stderr != *'no time'* ]] || fail "$stderr"
}

# bats test_tags=slow
@test "a failure is explained by a process that is called before the last rank has ended" {
  failing
  explained
}

# bats test_tags=slow
@test "that process is killed: another one explains" {
  failing
  kill -KILL "$EXPLAINER"
  explained
}

# bats test_tags=slow
@test "that process gets all the signals of a batch system, and of a terminal" {
  failing
  for signal in TERM INT HUP QUIT USR1 USR2; do
    kill -s "$signal" "$EXPLAINER"
  done
  explained
}

# bats test_tags=slow
@test "that process is stopped: it is woken" {
  failing
  kill -STOP "$EXPLAINER"
  explained
}

# bats test_tags=slow
@test "SIGKILL of the launcher ends that process, too, also with the whole group, and if somebody has stopped it" {
  local how
  for how in one group stopped; do
    rm -f "$STUB_OUT"/*
    failing
    dies_with_launcher "$how" "$EXPLAINER"
  done
}

@test "a job that ends well, or by a signal, needs no such process" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh config.yaml
  run ! pgrep -P "$LAUNCHER" -f mindspore-launch-report
  end_by TERM 143
  [[ "$(launch_json 'r["outcome"]["exit"], r["outcome"]["stopped_by"], "diagnosis" in r["outcome"]')" = "(143, 'SIGTERM', False)" ]]
}
