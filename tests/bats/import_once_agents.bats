#!/usr/bin/env bats
# --import_once under mpirun: one process of each host imports, and the ranks that agents start are its forks.

# bats file_tags=thorough
load helper

setup() {
  need mpirun
  setup_world
  HCCN=()
  printf 'import os\nprint("heavy imported by", os.getpid(), flush=True)\n' >heavy.py
  cp "$FIXTURES/tells_itself.py" .
  MPIRUN=(bash "$SCRIPTS/run_mpirun.sh" --device_target CPU -n 3 --grace 2)
}

teardown() {
  end_left_over
}

# mpirun_of WORD...: the launch of three ranks, on CPU
mpirun_of() {
  "${MPIRUN[@]}" "$@"
}

# importers: how many processes have imported the module for the ranks, as the first lines of their logs have it
importers() {
  grep -hm1 '^heavy imported by' logs/latest/rank_*.log | sort -u | wc -l
}

# differs WORD...: what the program of these words tells of itself when it is started in the two ways, and differs
differs() {
  local way
  for way in --import_once=heavy ''; do
    mkdir -p "$BATS_TEST_TMPDIR/$way"
    ends 0 '*' mpirun_of ${way:+"$way"} "$@"
    [[ -z $way && $(importers) -eq 3 || -n $way && $(importers) -eq 1 ]] || fail "$(head logs/latest/*.log)"
    [[ -z $(find logs/latest/ -name 'imports*') ]] || fail "$(ls -A logs/latest)"
    sed -E "$SAME" "$STUB_OUT/rank_1.json" >"$BATS_TEST_TMPDIR/$way.json"
  done
  diff "$BATS_TEST_TMPDIR/.json" "$BATS_TEST_TMPDIR/--import_once=heavy.json"
}
# numbers and names of a run
SAME='s/run_mpirun-[0-9TZ]+-[0-9]+/RUN/g; s/0x[0-9a-f]+/ADDRESS/g; s/(_PORT[=": ]+)[0-9]+/\1N/'

@test "a program cannot tell that it is a fork" {
  differs tells_itself.py --word ''
  differs --per_rank_words tells_itself.py --me '{rank}{rank}' '{run}'
}

@test "exit codes and signals are those of each rank, and the first failure ends the others" {
  printf '%s\n' 'import atexit, heavy, os, sys, signal' 'atexit.register(print, "at the end", flush=True)' \
    'if os.environ["RANK_ID"] == sys.argv[1]:' '    exec(sys.argv[2])' 'signal.pause()' >rank.py
  local rank
  for rank in 0 2; do
    ends 7 "*rank $rank (device $rank) exited with code 7*143 SIGTERM, stopped by us*" mpirun_of --import_once=heavy rank.py "$rank" 'sys.exit(7)'
    grep -qx 'at the end' "logs/latest/rank_$rank.log"
    ends 139 "*rank $rank (device $rank) was ended by SIGSEGV*" mpirun_of --import_once=heavy rank.py "$rank" 'os.kill(os.getpid(), signal.SIGSEGV)'
    [[ $(importers) -eq 1 ]] || fail "$(head logs/latest/*.log)"
  done
  nobody_left
}
