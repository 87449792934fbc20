#!/usr/bin/env bats
# --import_once under srun: one process of each of two nodes imports, and the ranks of the node are its forks.

# bats file_tags=thorough
load ../helper
load ../hosts

setup_file() {
  slurm_up
}

teardown_file() {
  slurm_down
}

setup() {
  [[ -z $WHY_NOT ]] || skip "$WHY_NOT"
  setup_world
  HCCN=()
  printf 'import os\nNUMBER = 3\nprint("heavy imported by", os.getpid(), flush=True)\n' >heavy.py
}

teardown() {
  [[ -n $WHY_NOT ]] || end_left_over
}

# srun_of WORD...: run_slurm.sh on two nodes of two ranks
srun_of() {
  salloc --quiet -N 2 --ntasks-per-node=2 bash "$SCRIPTS/run_slurm.sh" --device_target CPU --grace 2 --import_once=heavy "$@"
}

@test "each node has a parent; a rank has its own numbers of Slurm, its exit code, and what it leaves" {
  printf '%s\n' 'import heavy, os, subprocess, sys' 'print("rank", *(os.environ[n] for n in sys.argv[1:]))' \
    'if os.environ["RANK_ID"] == "3":' '    subprocess.Popen(["sh", "-c", "sleep 2; echo left; exit 5"])' >program.py
  ends 5 '*rank 3 (device 1 of n1) ended with 0 and left a process * which exited with code 5 *' \
    srun_of program.py RANK_ID DEVICE_ID LOCAL_RANK SLURM_PROCID SLURM_LOCALID SLURMD_NODENAME
  [[ "$(grep -h '^rank' logs/latest/rank_?.log)" = $'rank 0 0 0 0 0 n0\nrank 1 1 1 1 1 n0\nrank 2 0 0 2 0 n1\nrank 3 1 1 3 1 n1' ]] || fail "$(cat logs/latest/rank_?.log)"
  [[ "$(grep -hm1 '^heavy imported by' logs/latest/rank_?.log | uniq -c | awk '{print $1}' | xargs)" = '2 2' ]] || fail "$(head logs/latest/rank_*.log)"
  nobody_left
}

@test "a node on which the ranks cannot be forks is named, and the others fork" {
  printf 'import heavy\n' >program.py
  printf '%s\n' 'import os, socket' 'print("heavy imported by", os.getpid())' \
    'if os.environ["SLURMD_NODENAME"] == "n1": kept = socket.socket()' >heavy.py
  ends 0 "*note: --import_once: $(uname -n): the import of heavy opens socket:*, which forks would share; each rank imports for itself*" srun_of program.py
  [[ "$(grep -hm1 '^heavy imported by' logs/latest/rank_?.log | uniq -c | awk '{print $1}' | xargs)" = '2 1 1' ]] || fail "$(head logs/latest/rank_*.log)"
}

@test "scancel, a signal, or SIGKILL of srun or of the launcher, while parents import or ranks run leaves nothing" {
  local who when
  for when in import run; do
    hold_at "$when"
    for who in scancel TERM launcher srun; do
      rm -f "$STUB_OUT/held"
      behind salloc --quiet -N 2 --ntasks-per-node=2 bash "$SCRIPTS/run_slurm.sh" --device_target CPU --grace 2 --import_once=heavy program.py
      eventually held
      case $who in
        scancel) scancel "$(squeue -h -o %i)" ;;
        TERM) kill -TERM "$(launch_json 'r["run_dir"].rpartition("-")[2]')" ;;
        launcher) kill -KILL "$(launch_json 'r["run_dir"].rpartition("-")[2]')" ;;
        srun) pkill -KILL -P "$(launch_json 'r["run_dir"].rpartition("-")[2]')" -x srun ;;
      esac
      eventually nobody_left || fail "$when $who"
      eventually gone "$LAUNCHER"
    done
  done
}
