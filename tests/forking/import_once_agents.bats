#!/usr/bin/env bats
# --import_once under mpirun: one process of each host imports, and the ranks that agents start are its forks.

# bats file_tags=thorough
load ../helper

setup() {
  need mpirun
  setup_world
  HCCN=()
  printf 'import os\nNUMBER = 3\nprint("heavy imported by", os.getpid(), flush=True)\n' >heavy.py
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
SAME='s,tools/(rank|forking)/agent.py,AGENT,; s/ompi[.][0-9]+/OMPI/; s/prterun-[^@]*@/JOB@/; s/tcp4:.*/ADDRESS/; s/run_mpirun-[0-9TZ]+-[0-9]+/RUN/g; s/0x[0-9a-f]+/ADDRESS/g; s/(_PORT[=": ]+)[0-9]+/\1N/'
# of Open MPI 4: its places, addresses and number of the job
SAME+='; s/((PMIX_[A-Z0-9_]+|OMPI_FILE_LOCATION|OMPI_MCA_[a-z_]+)[=": ]+).*/\1OF RUN/'

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

@test "the first rank of a host may end long before the others, whose ends are known all the same" {
  printf '%s\n' 'import heavy, os, sys, time' 'if os.environ["RANK_ID"] != "0":' \
    '    while not os.path.exists("go"): time.sleep(0.02)' 'sys.exit(int(os.environ["RANK_ID"]) * 3 % 6)' >rank.py
  behind "${MPIRUN[@]}" --import_once=heavy --keep_going rank.py
  eventually grep -q . logs/latest/rank_0.log
  eventually no_rank 0
  : >go
  ended 3 '*rank 1 (device 1) exited with code 3*'
  [[ "$(launch_json '[r["outcome"]["members"][n]["status"] for n in "012"]')" = '[0, 3, 0]' ]] || fail "$stderr"
}

# is_with PID NAME=VALUE: the process is of this test, as others run at the same time, and has the variable
is_with() {
  grep -qzxF "STUB_OUT=$STUB_OUT" "/proc/$1/environ" && grep -qzxF "$2" "/proc/$1/environ"
} 2>/dev/null

# no_rank N: no process of this rank runs, but for its agent
no_rank() {
  local pid
  for pid in $(pgrep -f -- '-u rank.py'); do
    ! is_with "$pid" "RANK_ID=$1" || return 1
  done
}

@test "an import that forks cannot share is named once, and each rank imports for itself" {
  local line why
  printf 'import heavy\n' >program.py
  while IFS='|' read -r line why; do
    printf '%s\nimport os\nprint("heavy imported by", os.getpid())\n' "$line" >heavy.py
    ends "${why%%:*}" "*note: --import_once: the import of heavy ${why#*:}; each rank imports for itself*" mpirun_of --import_once=heavy program.py
    [[ $(grep -c 'note: --import_once' <<<"$stderr") -eq 1 ]] || fail "$stderr"
    [[ ${why%%:*} -ne 0 || $(importers) -eq 3 ]] || fail "$line: $(head logs/latest/*.log)"
  done <<'LINES'
import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()|0:starts threads (1), which forks do not have
import os; rank = os.getenv("OMPI_COMM_WORLD_RANK")|0:reads OMPI_COMM_WORLD_RANK, which each rank has for itself
raise SystemExit(4)|4:failed: SystemExit: 4
LINES
  nobody_left
}

@test "a parent that dies before it has forked all ranks ends the job, and the log of a rank has what it printed" {
  printf 'import heavy\n' >program.py
  printf 'import os, signal\nprint("in the parent", flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n' >heavy.py
  ends 137 '*rank 0 (device 0) was ended by SIGKILL*the last lines of *rank_0.log:*in the parent*' mpirun_of --import_once=heavy program.py
  printf 'import os\nos._exit(0)\n' >heavy.py
  ends 255 '*rank 0 *' mpirun_of --import_once=heavy program.py
  nobody_left
}

# agent N: the process of the agent of rank N
agent() {
  local pid
  for pid in $(pgrep -f -- '-S [^ ]*/tools/forking/agent.py'); do
    is_with "$pid" "OMPI_COMM_WORLD_RANK=$1" && printf '%s\n' "$pid" && return
  done
}

@test "a signal, or SIGKILL of the launcher, of mpirun or of an agent, while the parent imports or the ranks run leaves nothing" {
  local who when
  for when in import run; do
    hold_at "$when"
    for who in TERM launcher mpirun 0 1; do
      rm -f "$STUB_OUT/held"
      behind "${MPIRUN[@]}" --import_once=heavy program.py
      eventually held
      case $who in
        TERM) end_by TERM 143 '*' || fail "$when $who" ;;
        launcher) kill -KILL "$LAUNCHER" ;;
        mpirun) kill -KILL "$(above "$(agent 0)" 1)" ;;
        *) kill -KILL "$(agent "$who")" ;;
      esac
      eventually nobody_left || fail "$when $who"
      wait "$LAUNCHER" && fail "$when $who: exit 0" || true
    done
  done
}

@test "a restart has a fresh parent" {
  printf 'import os, heavy\nos._exit(0 if "RESUME" in os.environ else 3)\n' >program.py
  printf 'import os\nprint("heavy imported by", os.getpid(), os.environ.get("RESUME"), flush=True)\n' >heavy.py
  ends 0 '*restart 1 of 1*' mpirun_of --max_restarts 1 --import_once=heavy program.py
  grep -qx 'heavy imported by [0-9]* None' logs/latest/rank_1.log
  grep -qx 'heavy imported by [0-9]* 1' logs/latest/restart_1/rank_1.log
}

@test "a hang shows where the program of each rank is" {
  printf 'import heavy, threading\ndef stuck():\n    threading.Event().wait()\nstuck()\n' >program.py
  ends 124 '*in wait*called from stuck (*program.py:3)*' mpirun_of --hang_timeout 4 --import_once=heavy program.py
  [[ $(tail -n 1 logs/latest/rank_1.stack) == *'program.py", line 4 in <module>' ]] || fail "$(<logs/latest/rank_1.stack)"
}

@test "what a rank leaves is waited for, and its failure is the rank's" {
  printf '%s\n' 'import heavy, os, subprocess, sys' \
    'if os.environ["RANK_ID"] == "1":' '    subprocess.Popen(["sh", "-c", "sleep 2; echo left; exit 5"])' >program.py
  ends 5 '*rank 1 ended with 0 and left a process *rank 1 (device 1) ended with 0 and left a process * which exited with code 5 *' mpirun_of --leftovers wait --import_once=heavy program.py
  grep -qx left logs/latest/rank_1.log
  nobody_left
}

@test "--dry_run says it, and the commands that it prints start the ranks" {
  printf 'import heavy\n' >program.py
  ends 0 '*' mpirun_of --dry_run --import_once=heavy program.py
  [[ $output == *'# --import_once: on each host one process imports heavy, and the ranks there are its forks'* ]] || fail "$output"
}

# mindspore_with NAME: a MindSpore whose function of this name takes the rank's numbers from Open MPI, at its import
mindspore_with() {
  mkdir -p mindspore/communication
  : >mindspore/__init__.py
  : >mindspore/communication/__init__.py
  printf '%s\n' 'import os' 'print("heavy imported by", os.getpid(), flush=True)' "def $1():" '    number = os.getenv("OMPI_COMM_WORLD_RANK")' \
    '    if number:' '        os.environ["TAKEN"] = number' "$1()" >mindspore/communication/management.py
}

@test "what MindSpore takes from Open MPI at its import, each fork takes for itself; another reader of it is named" {
  printf 'import os, mindspore.communication.management\nprint("taken", os.environ.get("TAKEN"))\n' >program.py
  mindspore_with _set_rank_from_mpi
  ends 0 '*' mpirun_of --import_once=mindspore.communication.management program.py
  [[ "$(grep -h '^taken' logs/latest/rank_?.log | xargs)" = 'taken 0 taken 1 taken 2' && $(importers) -eq 1 ]] || fail "$stderr" "$(cat logs/latest/rank_?.log)"
  mindspore_with _another_name
  ends 0 '*note: --import_once: the import of mindspore.communication.management reads OMPI_COMM_WORLD_RANK, *' \
    mpirun_of --import_once=mindspore.communication.management program.py
  [[ "$(grep -h '^taken' logs/latest/rank_?.log | xargs)" = 'taken 0 taken 1 taken 2' && $(importers) -eq 3 ]] || fail "$stderr"
}

@test "a program may call MPI_Init: each fork does it for itself" {
  local lib
  lib=$(find -L "$(dirname "$(readlink -f "$(command -v mpirun)")")/../lib" -name 'libmpi.so*' -size +100k 2>/dev/null | head -n 1)
  [[ -n $lib ]] || skip 'needs libmpi.so beside mpirun'
  cat >program.py <<'PY'
import ctypes
import os
import sys

import heavy

lib = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
world, number, add = (
    ctypes.byref(ctypes.c_char.in_dll(lib, name)) for name in ("ompi_mpi_comm_world", "ompi_mpi_int", "ompi_mpi_op_sum")
)
rank, total = ctypes.c_int(), ctypes.c_int()
lib.MPI_Init(None, None)
lib.MPI_Comm_rank(world, ctypes.byref(rank))
own = ctypes.c_int(rank.value + 1)
lib.MPI_Allreduce(ctypes.byref(own), ctypes.byref(total), 1, number, add, world)
print("mpi", rank.value, total.value, os.environ["RANK_ID"], flush=True)
lib.MPI_Finalize()
PY
  ends 0 '*' mpirun_of --import_once=heavy program.py "$lib"
  [[ "$(grep -h '^mpi' logs/latest/rank_?.log)" = $'mpi 0 6 0\nmpi 1 6 1\nmpi 2 6 2' && $(importers) -eq 1 ]] || fail "$(cat logs/latest/rank_?.log)"
}
