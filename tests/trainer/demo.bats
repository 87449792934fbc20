#!/usr/bin/env bats
# The demo for real: four MindSpore ranks train on this machine's processors. Takes half a minute.

# bats file_tags=thorough,trains
load ../helper

@test "four ranks train LeNet-5 together: the loss falls, and nine of ten held-out digits are read" {
  need_mindspore
  unset RANK_TABLE_FILE
  PYTHON=$(command -v python)
  TEST_MARK=$BATS_TEST_TMPDIR
  export PYTHON TEST_MARK
  cd "$BATS_TEST_TMPDIR"
  ends 0 '*' timeout 300 bash "$SCRIPTS/ascend4p.sh" --device_target CPU --import_once "$PROJECT/configs/mnist/lenet5_digits.yaml"
  [[ $stderr != *'imports for itself'* ]] || fail "$stderr"
  # progress, in upstream's form: epoch: 1 step: 8, loss is 1.81
  first=$(sed -n 's/^epoch: .* loss is //p' <<<"$output" | head -n 1)
  last=$(sed -n 's/^epoch: .* loss is //p' <<<"$output" | tail -n 1)
  awk -v first="$first" -v last="$last" 'BEGIN { exit !(last < first / 4) }' || fail "loss: $first -> $last"
  accuracy=$(sed -n 's/^accuracy on held-out data: \(.*\)%$/\1/p' <<<"$output")
  awk -v accuracy="$accuracy" 'BEGIN { exit !(accuracy > 90) }' || fail "accuracy: $accuracy %"
  # the table: rank, device, exit, time, log
  for rank in 0 1 2 3; do
    [[ $stderr =~ (^|$'\n')"$rank     $((rank + 4))       0 "[^$'\n']*" s  "[^$'\n']*"rank_$rank.log" ]] || fail "$stderr"
    # the same weights everywhere: the same accuracy
    grep -qx "accuracy on held-out data: $accuracy%" "logs/latest/rank_$rank.log"
    [[ -n $(find "logs/latest/ckpt/rank_$rank" -name '*.ckpt') ]]
  done
  [[ $stderr == *"logs and launch.json are in logs/ascend4p-"* ]]
  nobody_left
}
