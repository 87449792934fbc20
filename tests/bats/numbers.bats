#!/usr/bin/env bats
# Numbers that the shell takes from outside: octal ones, words that it would run, and a clock that has just begun.

# bats file_tags=thorough
load helper

setup() {
  setup_world
}

@test "the uptime of a machine that has just started, and of one whose uptime is written in another way" {
  run -0 bash -euc '
    source "$1/lib/clock.sh"
    for text in 0.78 0.08 00.09 12.5 12 12.345678 123456789012345.99; do
      clock::hundredths "$text" && printf "%s " "$REPLY"
    done
    for text in "" . .5 1e5 -1.5 0x1f abc "a[\$(touch ran)]" "1.a[\$(touch ran)]"; do
      ! clock::hundredths "$text" || printf "taken: %s" "$text"
    done' - "$SCRIPTS"
  [[ $output == '78 8 9 1250 1200 1234 12345678901234599 ' && ! -e ran ]] || fail "$output"
}

@test "an uptime that cannot be read for a moment: the clock goes on with SECONDS" {
  run -0 bash -euc '
    source "$1/lib/clock.sh"
    clock::now
    first=$REPLY
    clock::hundredths() { return 1; }
    SECONDS=$((SECONDS + 7))
    clock::now
    printf "%d " "$(((REPLY - first) / 100))"
    clock::reached "$((first + 600))" && ! clock::reached "$((first + 60000))"' - "$SCRIPTS"
  [[ $output == '7 ' ]] || fail "$output"
}

# in_first_second: bash has run in the first second of a time namespace; on a busy machine it starts later.
in_first_second() {
  local uptime
  until read -r uptime _ </proc/uptime && [[ $uptime == *.[012]* ]]; do
    read -r -t 0.05 <> <(:) || :
  done
  need_namespaces "to start a clock anew" -T --boottime "-${uptime%.*}" --fork
  # shellcheck disable=SC2016 # for the inner shell
  run --separate-stderr unshare -T --boottime "-${uptime%.*}" --fork bash -euc '
    source "$1/lib/clock.sh"
    clock::now
    ((REPLY < 100)) || exit 99
    until clock::reached 120; do :; done' - "$SCRIPTS"
  [[ $status -ne 99 ]]
}

@test "the first second of a time namespace" {
  eventually in_first_second
  was 0 ''
}

@test "options with leading zeros, in hexadecimal, and with a command inside" {
  STUB_DO='0: wait; 1: exit 3' ends 3 '*' launch ascend2p.sh --grace 08 --timeout 0900 --max_restarts 00 config.yaml
  rm -r logs train.log "${STUB_OUT:?}"/*
  local option text
  for option in grace timeout hang_timeout max_restarts; do
    # shellcheck disable=SC2016 # it is not meant to run
    for text in 0x10 'a[$(touch ran)]' 1+1 ' 1' 123456789; do
      refused 2 "*--$option * is not a whole number*" launch ascend2p.sh "--$option=$text" config.yaml
    done
  done
  [[ ! -e ran ]]
}

@test "an agent whose engine gives it no number refuses to be a rank, and runs nothing" {
  local text
  # shellcheck disable=SC2016 # it is not meant to run
  for text in '' x '-1' '0x0' 'a[$(touch ran)]'; do
    ends 78 "*no rank: mpirun numbers it '0', on its host '*" env LAUNCH_ENGINE=mpirun LAUNCH_HOST=a LAUNCH_FOLDER="$PWD" \
      LAUNCH_EXPORTS='' OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK="$text" bash "$SCRIPTS/lib/rank_agent.sh" python
  done
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
