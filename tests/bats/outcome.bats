#!/usr/bin/env bats
# What stays of a launch: its outcome in launch.json, also where somebody is in the way.

load helper

setup() {
  setup_world
  export STUB_DO='0: wait'
}

# one_of_two_ended: rank 1 has ended; the process that will write the outcome is there, in WRITER.
one_of_two_ended() {
  launch_behind ascend2p.sh --grace 1 config.yaml
  eventually pgrep -P "$LAUNCHER" -f finish.py
  WRITER=$(pgrep -P "$LAUNCHER" -f finish.py)
}

# stopped: ends the job.
stopped() {
  end_by TERM 143
}

@test "the outcome is written by a process that is called before the last rank has ended" {
  one_of_two_ended
  stopped
  [[ "$(launch_json 'r["outcome"]["members"]["1"]["status"], r["outcome"]["exit"]')" = '(0, 143)' ]]
}

@test "that process is killed: another one writes the outcome" {
  one_of_two_ended
  kill -KILL "$WRITER"
  stopped
  [[ "$(launch_json 'r["outcome"]["stopped_by"]')" = SIGTERM ]]
  [[ $stderr != *'the outcome is not'* ]] || fail "$stderr"
}

@test "SIGKILL of the launcher ends that process, too" {
  one_of_two_ended
  kill -KILL "$LAUNCHER"
  eventually gone "$WRITER"
  eventually nobody_left
}
