#!/usr/bin/env bats
# Real trainings with a defect that nothing but the launcher names: tests/fixtures/trains_wrong.py.

# bats file_tags=thorough,trains
load ../helper

setup() {
  setup_training
  need_mindspore
  import_once
}

# trains DEFECT RANKS STEPS PATTERN: the training ends with 0, with messages that fit.
trains() {
  ends 0 "$4" timeout 300 bash "$SCRIPTS/launch.sh" --device_target CPU -n "$2" --console none \
    "$FIXTURES/trains_wrong.py" "$1" "$3" || return
  launch_json_fits
}

# found: the kinds of findings in launch.json, with their ranks
found() {
  launch_json '[(f["kind"], f["ranks"]) for f in r["outcome"].get("findings", [])]'
}

@test "a good training: nothing is found" {
  trains none 2 40 '*'
  [[ "$(found)" = '[]' ]] || fail "$stderr"
}

@test "ranks that joined and count themselves alone print it, and have the same losses" {
  trains counts-1 2 20 '*ranks 0,1 printed "rank_size: 1"*ranks 0,1 printed the same losses to the last digit in all 20 steps*'
  [[ "$(found)" = "[('world-size', [0, 1]), ('same-data', [0, 1])]" ]] || fail "$stderr"
}

@test "nan of one rank comes to the others in the next step" {
  trains nan 2 16 "*the loss of rank 1 was nan first, in epoch 1 step 12; the others' only from epoch 1 step 13 on*"
  [[ "$(found)" = "[('not-finite', [1])]" ]] || fail "$stderr"
}

@test "a rank that takes no gradient leaves the others" {
  trains frozen 3 60 "*the loss of rank 2 began like the others' and then diverged: *"
  [[ "$(found)" = "[('drifts', [2])]" ]] || fail "$stderr"
}

@test "ranks that do not call init() train alone" {
  printf 'import mindspore\nprint("epoch: 1 step: 1, loss is", float(mindspore.Tensor(1.5)))\n' >alone.py
  ends 0 "*no rank joined MindSpore's cluster: each of the 2 ranks ran alone*" \
    timeout 300 bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 alone.py
  [[ "$(found)" = "[('alone', [0, 1])]" ]] || fail "$stderr"
}

@test "two ranks that save into one file: seen while they write, or in what MindSpore says when one removes the other's" {
  behind bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 --console none "$FIXTURES/trains_wrong.py" one-file 9999
  eventually grep -qE 'wrote into one file, |another process removed that file' "$BATS_TEST_TMPDIR/stderr"
  kill -TERM "$LAUNCHER" || true
  ended
  [[ $stderr == *weights.* && "$(found)" == *-file* ]] || fail "$stderr"
}
