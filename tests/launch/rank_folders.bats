#!/usr/bin/env bats
# --rank_folder: a working folder for each rank, whatever starts the ranks.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
  HCCN=()
  mkdir src
  echo 'X = 5' >src/net.py
  echo mine >result.txt
  printf '%s\n' 'import os' 'from src.net import X' 'open("result.txt", "a").write(os.environ["RANK_ID"])' \
    'print(X, os.getcwd() == os.environ["PWD"], sorted(os.listdir()))' >train.py
}

# apart: each rank wrote in a folder of its own, and nothing of the user's was written
apart() {
  local -r run=$(readlink -f logs/latest)
  [[ "$(cat result.txt "$run"/folders/rank_?/result.txt)" = $'mine\n01' ]] || fail "$(head result.txt "$run"/folders/*/*)"
  [[ "$(cat "$run"/rank_?.log)" = $'5 True [\'config.yaml\', \'result.txt\', \'src\', \'train.py\']\n5 True [\'config.yaml\', \'result.txt\', \'src\', \'train.py\']' ]] || fail "$(cat "$run"/rank_?.log)"
  [[ "$(launch_json '[row["folder"] for row in r["ranks"]]')" = "['folders/rank_0', 'folders/rank_1']" ]]
}

@test "the launcher itself; after a restart the rank finds what it has written" {
  ends 0 '*' bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU --rank_folder train.py
  apart
  echo 'import sys; sys.exit(os.environ.get("RESUME") != "1")' >>train.py
  ends 0 '*' bash "$SCRIPTS/launch.sh" -n 1 --device_target CPU --rank_folder --max_restarts 1 train.py
  [[ "$(cat logs/latest/folders/rank_0/result.txt)" = 00 ]]
}

@test "mpirun's agents" {
  need mpirun
  ends 0 '*' bash "$SCRIPTS/run_mpirun.sh" -n 2 --device_target CPU --rank_folder train.py
  apart
}

@test "msrun's agents" {
  need_mindspore
  export PYTHONPATH=$FIXTURES/quick_msrun
  ends 0 '*' bash "$SCRIPTS/run_msrun.sh" -n 2 --device_target CPU --rank_folder train.py
  apart
}

@test "the dry run makes the same folders when it is pasted" {
  bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU --dry_run --rank_folder train.py | sed '/mindspore_scheduler/d' >"$BATS_TEST_TMPDIR/plan.sh"
  [[ ! -e logs ]]
  bash "$BATS_TEST_TMPDIR/plan.sh"
  [[ "$(cat result.txt logs/*/folders/rank_?/result.txt)" = $'mine\n01' ]]
}

@test "a folder that has gone is made again for a restart; this project's trainer needs none" {
  echo 'import shutil, sys; os.environ.get("RESUME") or (shutil.rmtree(os.getcwd()), sys.exit(1))' >>train.py
  ends 0 '*' bash "$SCRIPTS/launch.sh" -n 1 --device_target CPU --rank_folder --max_restarts 1 train.py
  [[ "$(cat logs/latest/folders/rank_0/result.txt result.txt)" = $'0mine' ]]
  rm -rf logs train.log "${STUB_OUT:?}"/* # a scheduler may have begun, or not
  refused 2 "launch.sh: --rank_folder: ranks of this project's trainer do not overwrite each other's files" \
    bash "$SCRIPTS/launch.sh" -n 1 --device_target CPU --rank_folder "$PROJECT/configs/mnist/lenet5_digits.yaml"
}
