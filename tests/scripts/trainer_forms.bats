#!/usr/bin/env bats
# Trainers in the forms that public ones have, each under every engine: one command, no file beside them, no change.

# bats file_tags=thorough
load ../helper

# The command that starts the trainer, what every rank prints after "rank N of N: ", and the words that start a rank.
forms() {
  cat <<'LIST'
command_line.py --model resnet --data_dir data --distribute|resnet with data, distribute True|python -u command_line.py --model resnet --data_dir data --distribute
other_config.py --config configs/tiny.yaml --epochs 3|momentum 0.01, 3 epochs|python -u other_config.py --config configs/tiny.yaml --epochs 3
environment.py|device *|python -u environment.py
-m recogniser.train -o lr=0.1 epochs=3|recogniser with ?'lr=0.1', 'epochs=3'?|python -u -m recogniser.train -o lr=0.1 epochs=3
start.sh lenet|lenet with images, distribute False|./start.sh lenet
bash start.sh lenet|lenet with images, distribute False|bash start.sh lenet
--pytest parallel_training.py::test_train|one test|python -u -m pytest -s parallel_training.py::test_train
LIST
}

setup() {
  setup_world
  HCCN=()
  cp -r "$FIXTURES/trainers/." .
  rm config.yaml hccn.conf # no file beside the trainers
}

teardown() {
  [[ -z ${SLURM-} ]] || bash "$FIXTURES/slurm.sh" down "$SLURM"
  end_left_over
}

# each_form ASK RANKS ARGUMENTS COMMAND...: FORM is the command with the next trainer, and ASK gets the number of ranks, what
# each prints, and the words that start it. ARGUMENTS, if not empty, is the script's own, between the options and the program.
each_form() {
  local words said starts
  local -a own=() form
  read -ra own <<<"$3"
  while IFS='|' read -r words said starts; do
    read -ra form <<<"$words"
    case $words in # an option stands before the script's arguments
      --*) form+=("${own[@]+"${own[@]}"}") ;;
      *) form=("${own[@]+"${own[@]}"}" "${form[@]}") ;;
    esac
    FORM=("${@:4}" "${form[@]}")
    "$1" "$2" "$said" "$starts" || fail "$words" || return
  done < <(forms)
}

# all_forms RANKS ARGUMENTS COMMAND...: the command starts all trainers with as many ranks
all_forms() {
  each_form trained "$@" || return
  nobody_left
}

# trained RANKS PATTERN STARTS: FORM starts so many ranks by these words, and what they say fits
trained() {
  ends 0 '*' "${FORM[@]}" || return
  each_says "$1" "$2" || return
  [[ $(sed -n '/^  "trainer": \[/,/^  \]/s/^    "\(.*\)",\{0,1\}$/\1/p' logs/latest/launch.json | tr '\n' ' ') == *"$3 " ]] || fail "not $3" || return
  rm -r logs
}

# same_forms RANKS ARGUMENTS COMMAND...: the same of a script whose engine starts all trainers in another test here: it
# starts the first one, and would start the others by the same words
same_forms() {
  STARTED=''
  each_form trained_or_planned "$@" || return
  nobody_left
}

# trained_or_planned RANKS PATTERN STARTS: the first FORM starts its ranks; the plan of any other has these words
trained_or_planned() {
  if [[ -z $STARTED ]]; then
    STARTED=yes
    trained "$@"
    return
  fi
  MSLAUNCH_OPTIONS=--dry_run ends 0 '*' "${FORM[@]}" || return
  [[ $output == *": $1 rank"* ]] || fail "not $1 ranks: $output" || return
  [[ $output =~ [\ /]"$3"(' >'[^$'\n']*)?($'\n'|$) && ! -e logs ]] || fail "not $3: $output"
}

# each_says RANKS PATTERN: the log of each of so many ranks has its line, and what it says fits; there are no more logs
each_says() {
  local rank
  local -a logs=(logs/latest/rank_*.log)
  [[ ${#logs[@]} -eq $1 ]] || fail "not $1 logs: ${logs[*]}" || return
  for ((rank = 0; rank < $1; rank++)); do
    # shellcheck disable=SC2053 # a pattern is meant
    [[ $'\n'$(<"logs/latest/rank_$rank.log")$'\n' == *$'\n'"rank $rank of $1: "$2$'\n'* ]] \
      || fail "rank $rank: not \"$2\"" "$(<"logs/latest/rank_$rank.log")" || return
  done
}

# on_cpu SCRIPT WORD...: the script, for ranks on this machine's processors
on_cpu() {
  bash "$SCRIPTS/$1" --device_target CPU "${@:2}"
}

# need_msrun: the real one, without the rest of MindSpore
need_msrun() {
  need_mindspore
  export PYTHONPATH=$FIXTURES/quick_msrun
}

@test "the launcher itself: launch.sh" { all_forms 3 '' on_cpu launch.sh -n 3; }
@test "the launcher itself: ascend2p.sh" { same_forms 2 '' on_cpu ascend2p.sh; }
@test "the launcher itself: run.sh" { same_forms 2 '. 2' on_cpu run.sh; }
@test "the launcher itself: run.sh, without DATA_PATH" { same_forms 2 2 on_cpu run.sh; }
@test "one process: run_cpu.sh" { all_forms 1 '' bash "$SCRIPTS/run_cpu.sh"; }

@test "the launcher itself: run_cluster.sh, typed with a rank table" {
  export STUB_SCHEDULER_EXIT=0
  python - >hccl.json <<'PY'
import json, random
devices = [{"device_id": str(n), "device_ip": f"10.78.0.{n + 1}", "rank_id": str(n)} for n in range(2)]
servers = [{"server_id": "127.0.0.2", "device": devices}]
table = {"version": "1.0", "server_count": "1", "server_list": servers, "status": "completed"}
print(json.dumps(table) + "".join(random.choices(" \n", k=32)))  # the scheduler's port follows from it
PY
  same_forms 2 '. hccl.json 2 0' on_cpu run_cluster.sh
}

@test "Open MPI: run_mpirun.sh" {
  need mpirun
  all_forms 2 '' on_cpu run_mpirun.sh -n 2
}

@test "Open MPI: run_mpirun_1.sh, with hosts" {
  need mpirun
  same_forms 2 localhost:2 on_cpu run_mpirun_1.sh
}

@test "Open MPI: run_gpu.sh" {
  need mpirun
  same_forms 2 . on_cpu run_gpu.sh -n 2
}

@test "Open MPI: run_gpu.sh, without DATA_PATH" {
  need mpirun
  same_forms 2 '' on_cpu run_gpu.sh -n 2
}

@test "Open MPI: run_mpirun_2.sh, with a hostfile" {
  need mpirun
  echo 'localhost slots=2' >hosts
  same_forms 2 hosts on_cpu run_mpirun_2.sh
}

@test "msrun: run_msrun.sh" {
  need_msrun
  all_forms 2 '' on_cpu run_msrun.sh --worker_num 2
}

@test "msrun: the scheduler is MindSpore's, not a second start of the user's shell script" {
  need_msrun
  cat >counted.sh <<'SH'
#!/bin/sh
echo "$MS_ROLE" >>starts
until [ -e "$STUB_OUT/scheduler.json" ] || [ "$(wc -l <starts)" -gt 2 ]; do sleep 0.1; done
SH
  chmod +x counted.sh
  ends 0 '*' on_cpu run_msrun.sh --worker_num 2 counted.sh
  [[ "$(<starts)" = $'MS_WORKER\nMS_WORKER' ]] || fail "$(<starts)"
}

@test "srun: run_slurm.sh" {
  SLURM=$BATS_TEST_TMPDIR/slurm
  WHY_NOT=$(env -u TEST_MARK bash "$FIXTURES/slurm.sh" up "$SLURM" 2>&1) || skip "${WHY_NOT:-no Slurm here}"
  export SLURM_CONF=$SLURM/slurm.conf
  all_forms 4 '' salloc --quiet -N 2 --ntasks-per-node=2 bash "$SCRIPTS/run_slurm.sh" --device_target CPU
}

@test "Open MPI: a shell script that hangs: Python says where its ranks are, and the script is not run again" {
  need mpirun
  printf '#!/bin/sh\necho "$#" >>starts\nexec sleep 600\n' >hang.sh
  chmod +x hang.sh
  ends 124 '*' on_cpu run_mpirun.sh -n 2 --hang_timeout 1 hang.sh
  [[ "$(<starts)" = $'0\n0' ]] || fail "$(<starts)"
}
