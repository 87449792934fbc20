#!/usr/bin/env bats
# --per_rank_words: a program's words that differ from rank to rank, whatever starts the ranks.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
  HCCN=()
  printf 'import sys\nprint(*sys.argv[1:])\n' >show.py
  WORDS=(--per_rank_words show.py '--device_id={device}' '{rank}/{local_rank}/{world_size}' '{run}/x' '{{rank}}' '{"a": 1}')
}

# shown: the ranks' words are right, in their logs and in launch.json.
shown() {
  local -r run=$(readlink -f logs/latest)
  local rank
  for rank in 0 1; do
    [[ "$(cat "$run/rank_$rank.log")" = "--device_id=$rank $rank/$rank/2 $run/x {rank} {\"a\": 1}" ]] || fail "$(cat "$run/rank_$rank.log")"
    [[ "$(launch_json "' '.join(r['ranks'][$rank]['words'])")" = "--device_id=$rank $rank/$rank/2 $run/x {rank}" ]] || fail "$(launch_json 'r["ranks"]')"
  done
}

@test "the launcher itself" {
  ends 0 '*' bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU "${WORDS[@]}"
  shown
}

@test "mpirun's agents, and its dry run, which can be pasted" {
  need mpirun
  ends 0 '*' bash "$SCRIPTS/run_mpirun.sh" -n 2 --device_target CPU "${WORDS[@]}"
  shown
  bash "$SCRIPTS/run_mpirun.sh" -n 2 --device_target CPU --dry_run "${WORDS[@]}" >plan.sh
  grep -q '^# rank 1 gets --device_id=1 1/1/2 ' plan.sh || fail "$(<plan.sh)"
  rm -r logs
  bash plan.sh
  [[ "$(cat logs/*/rank_1.log)" = '--device_id=1 1/1/2 '* ]] || fail "$(<plan.sh)"
}

@test "msrun's agents" {
  need_mindspore
  export PYTHONPATH=$FIXTURES/quick_msrun
  ends 0 '*' bash "$SCRIPTS/run_msrun.sh" --worker_num 2 --device_target CPU "${WORDS[@]}"
  shown
}

@test "the launcher's dry run has each rank's words, and can be pasted" {
  bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU --dry_run "${WORDS[@]}" | sed '/mindspore_scheduler/d' >plan.sh
  bash plan.sh
  [[ "$(cat logs/*/rank_1.log)" = '--device_id=1 1/1/2 '* ]] || fail "$(<plan.sh)"
}

@test "devices and not numbers; words of a trainer after --; the command of a restart" {
  printf 'import os, sys\nprint(*sys.argv[1:])\nsys.exit(int(os.environ.get("RESUME", "0") != "1"))\n' >train.py
  ends 0 '*' bash "$SCRIPTS/launch.sh" --devices 4,6 --device_target CPU --max_restarts 1 --restart_args 'again={device}' --per_rank_words \
    --train_script train.py config.yaml -- --device_id '{device}'
  [[ "$(cat logs/latest/restart_1/rank_?.log)" = $'--config config.yaml --device_id 4 again=4\n--config config.yaml --device_id 6 again=6' ]]
}

@test "a word for one rank that no shell expanded, or one to nothing: the hint comes before the start" {
  # shellcheck disable=SC2016 # the letters are meant
  ends 0 'launch.sh: note: no shell expands the program*--per_rank_words before the program and --device_id={device} after it*launch.sh: 2 ranks*' \
    bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU show.py '--device_id=$DEVICE_ID'
  ends 0 'launch.sh: note: --device_id has no value: *launch.sh: 2 ranks*' bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU show.py --device_id= --epochs 3
  # shellcheck disable=SC2016 # the shell of each rank expands it
  ends 0 'launch.sh: 2 ranks*' bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU bash -c 'python show.py --device_id=$DEVICE_ID'
  [[ "$(cat logs/latest/rank_?.log)" = $'--device_id=0\n--device_id=1' ]]
}
