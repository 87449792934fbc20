#!/usr/bin/env bats
# Numbers that come from outside: octal ones, and words that a shell would run.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
}

@test "options with leading zeros, in hexadecimal, and with a command inside" {
  STUB_DO='0: wait; 1: exit 3' ends 3 '*' launch ascend2p.sh --grace 08 --timeout 0900 --max_restarts 00 config.yaml
  rm -r logs train.log "${STUB_OUT:?}"/*
  local option text
  for option in grace timeout hang_timeout max_restarts; do
    # shellcheck disable=SC2016 # it is not meant to run
    for text in 0x10 'a[$(touch ran)]' 1+1 ' 1' 123456789; do
      refused_later 2 "*--$option * is not a @(whole number|time: )*" launch ascend2p.sh "--$option=$text" config.yaml
    done
  done
  all_refused
  [[ ! -e ran ]]
}

@test "variables of our agents in the user's shell do not reach them" {
  need mpirun
  HCCN=()
  # shellcheck disable=SC2016 # it is not meant to run
  LAUNCH_CONTROL=stdin LAUNCH_PATIENCE='a[$(touch ran)]' LAUNCH_BUS=$PWD/bus LAUNCH_LIFELINE=$PWD/life STUB_DO='1: exit 3' \
    ends 3 '*rank 1 (device 1) exited with code 3*exit 3; *' launch run_mpirun.sh -n 2 config.yaml
  [[ ! -e ran && ! -e bus && ! -e life ]]
}
