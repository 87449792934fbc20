#!/usr/bin/env bats
# A launcher as the program of several ranks: refused before the start, named when it is seen while it runs.

load ../helper

setup() {
  setup_world
  printf 'import os\nprint("rank", os.environ["RANK_ID"], "of", os.environ["RANK_SIZE"])\n' >show.py
}

teardown() {
  end_left_over
}

# cpu WORD...: launch.sh on CPU with two ranks
cpu() {
  bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 "$@"
}

# bats test_tags=slow
@test "a launcher as the program is refused, with a line that works when pasted" {
  refused 2 "launch.sh: msrun starts ranks itself: * type instead: bash *run_msrun.sh --device_target CPU --worker_num=2*" \
    cpu msrun --worker_num=2 --local_worker_num=2 show.py
  refused 2 'launch.sh: msrun starts ranks itself: *each rank would start *; type instead: bash *run_msrun.sh --device_target CPU *' \
    bash "$SCRIPTS/launch.sh" --device_target CPU msrun --worker_num=2 show.py
  refused 2 '*; type instead: bash *launch.sh --device_target CPU --nproc_per_node=2 show.py' cpu torchrun --nproc_per_node=2 show.py
  eval "${stderr##*type instead: }" >printed 2>&1
  grep -q 'rank 0 of 2' printed || fail "$(<printed)"
  rm -rf logs train.log "${STUB_OUT:?}"/* # the scheduler may have begun, too
  if command -v mpirun >/dev/null; then
    refused 2 '*; type instead: bash *run_mpirun.sh * -n 2 python show.py' \
      bash "$SCRIPTS/run_mpirun.sh" --device_target CPU mpirun -n 2 python show.py
  fi
  refused 2 '*; type instead: bash *run_msrun.sh *' bash "$SCRIPTS/msrun_launcher.sh" 'msrun --worker_num 2 show.py' 2
  refused 2 '*; type bash *run_msrun.sh instead of it, *' cpu bash -c 'cd . && msrun --worker_num 2 show.py'
}

@test "one rank may be a launcher, with a note" {
  printf '#!/bin/sh\necho "launches $*"\n' >msrun
  chmod +x msrun
  ends 0 '*note: msrun starts ranks itself: this launch sees one rank, but none of those*' \
    bash "$SCRIPTS/launch.sh" --device_target CPU -n 1 ./msrun --worker_num=2
  grep -qx 'launches --worker_num=2' logs/latest/rank_0.log
}

@test "a script that starts one is named with its line before it runs" {
  printf '%s\n' '#!/bin/bash' 'if [ -z "$1" ]; then msrun --worker_num 2 show.py; fi' 'python show.py' >start.sh
  chmod +x start.sh
  ends 0 '*note: ./start.sh:2 starts msrun, which starts ranks itself*' cpu ./start.sh alone
}

@test "a launcher that a shell only asks about is no launcher" {
  ends 0 '*' cpu bash -c 'command -v mpirun msrun >/dev/null; python show.py'
  ends 0 '*' cpu --no_check bash -c 'if false; then mpirun -n 2 show.py; fi; python show.py'
}

# is_named TEXT: the messages have the TEXT, a pattern of grep, while start.sh runs
is_named() {
  behind bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 ./start.sh
  eventually grep -q "$1" "$BATS_TEST_TMPDIR/stderr"
  end_by TERM 143
}

# bats test_tags=thorough
@test "a rank that starts ranks is named while it runs" {
  mkdir bin
  printf '#!/bin/sh\nwhile :; do sleep 1; done\n' >bin/mpirun
  printf '%s\n' '#!/bin/bash' 'x=mpi; exec bin/${x}run -n 2 python show.py' >start.sh
  chmod +x start.sh bin/mpirun
  is_named 'rank 0 has started mpirun (PID [0-9]*), which starts ranks itself; each of the 2 ranks'
  printf '%s\n' '#!/bin/bash' 'until ((${n:=0} == 3)); do RANK_ID=$n sleep 600 & n=$((n + 1)); done; wait' >start.sh
  is_named 'rank 0 has started processes with the RANK_ID of ranks 0-2: it seems to start all ranks of a job itself'
  nobody_left
}
