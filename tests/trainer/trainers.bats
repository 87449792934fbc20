#!/usr/bin/env bats
# The scripts of the tutorials (run.sh, run_cpu.sh, ...), with real MindSpore on this machine's processors.

# bats file_tags=thorough,trains
load ../helper

setup() {
  setup_training
}

# generated SCRIPT ARGUMENTS...: data that tools/prepare_SCRIPT.py makes, in the folder data.
generated() {
  python "$PROJECT/tools/prepare_$1.py" data "${@:2}" 2>prepare.log || fail "$(<prepare.log)"
}

# measured NAME: all values of that metric on held-out data in $output, in percent, in a line.
measured() {
  sed -n "s/^.*$1 on held-out data: \(.*\)%$/\1/p" <<<"$output" | tr '\n' ' '
}

@test "run.sh trains ResNet-50 on CIFAR-10 with two ranks, losses in upstream's form" {
  need_mindspore
  import_once
  generated cifar10 --images 10
  ends 0 '*' timeout 400 bash "$SCRIPTS/run.sh" --device_target CPU \
    --config "$PROJECT/configs/cls/resnet/resnet50_cifar10_cpu.yaml" data 2 -- \
    -o scheduler.num_epochs=2 system.log_interval=1 train.loader.batch_size=8 system.val_while_train=False
  # 50 images, 25 a rank: 3 full batches of 8 in each of two epochs
  for rank in 0 1; do
    [[ $(grep -cE '^epoch: [12] step: [1-3], loss is [0-9.]+$' "logs/latest/rank_$rank.log") -eq 6 ]] || fail "$output"
  done
  # each rank had data of its own, but in the end the same weights; only batch normalisation's means stay its own
  run ! diff <(grep 'loss is' logs/latest/rank_0.log) <(grep 'loss is' logs/latest/rank_1.log)
  python - logs/latest/ckpt/rank_{0,1}/*-2_3.ckpt <<'END' || fail "$output"
import sys
import mindspore
one, other = map(mindspore.load_checkpoint, sys.argv[1:])
differ = [name for name in one if (one[name].asnumpy() != other[name].asnumpy()).any()]
assert differ and all("moving_" in name for name in differ), differ
END
  nobody_left
}

@test "run_cpu.sh trains without a cluster, with and without data sinking; eval.py measures the same again" {
  need_mindspore
  import_once
  digits_in data
  for sink in False True; do
    DATA_PATH=data run --separate-stderr timeout 300 bash "$SCRIPTS/run_cpu.sh" "$PROJECT/configs/mnist/lenet5_digits.yaml" \
      -- -o scheduler.num_epochs=3 train.dataset_sink_mode="$sink"
    [[ $status -eq 0 ]] || fail "$stderr" "$output"
    [[ ! -e logs/latest/scheduler.log && $output == *'rank 0 of 1: 44 steps an epoch'* ]] || fail "$output"
  done
  accuracy=$(tail -n 1 logs/latest/rank_0.log)
  awk -v percent="${accuracy//[^0-9.]/}" 'BEGIN { exit !(percent > 60) }' || fail "$accuracy"
  newest=$(find logs/latest/ckpt -name '*.ckpt' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)
  DATA_PATH=data run --separate-stderr timeout 100 python "$PROJECT/tools/eval.py" --ckpt "$newest" \
    -c "$PROJECT/configs/mnist/lenet5_digits.yaml"
  [[ $status -eq 0 && ${lines[${#lines[@]}-1]} == "$accuracy" ]] || fail "$accuracy" "$output" "$stderr"
}

@test "a loss that is no number ends the job, with epoch and step" {
  need_mindspore
  import_once
  digits_in data
  DATA_PATH=data run --separate-stderr timeout 300 bash "$SCRIPTS/run_cpu.sh" "$PROJECT/configs/mnist/lenet5_digits.yaml" \
    -- -o scheduler.lr=1e30
  [[ $status -eq 1 && $stderr =~ "train.py: rank 0: the loss is "(nan|-?inf)" in epoch 1, step "[0-9]+" of 44; lower scheduler.lr" ]] \
    || fail "$stderr" "$output"
}

@test "the small CRNN learns to read rendered words" {
  [[ ${SLOW_TESTS-} == 1 ]] || skip "takes more than a minute; SLOW_TESTS=1 runs it"
  need_mindspore
  import_once
  generated text --scenes 1
  DATA_PATH=data ends 0 '*' timeout 500 bash "$SCRIPTS/run_cpu.sh" \
    "$PROJECT/configs/rec/crnn/crnn_resnet34_zh.yaml" -- -o scheduler.num_epochs=5
  measured 'character accuracy' | awk '{ exit !($1 < 10 && $NF > 30) }' || fail "$output"
}

@test "the small detector learns to find rendered words" {
  [[ ${SLOW_TESTS-} == 1 ]] || skip "takes more than a minute; SLOW_TESTS=1 runs it"
  need_mindspore
  import_once
  generated text
  DATA_PATH=data ends 0 '*' timeout 500 bash "$SCRIPTS/run_cpu.sh" \
    "$PROJECT/configs/det/dbnet/db_r50_icdar15.yaml"
  measured hmean | awk '{ exit !($1 < 20 && $NF > 40) }' || fail "$output"
}

@test "what is wrong with data or arguments is said before any rank starts" {
  need_mindspore # the plan asks for it
  generated cifar10 --images 20
  refuse() { # STATUS TEXT SCRIPT ARGUMENTS...
    run --separate-stderr bash "$SCRIPTS/$3" "${@:4}"
    [[ $status -eq $1 && $stderr == *"$2"* && ${#stderr_lines[@]} -eq 1 && ! -e logs ]] || fail "$stderr"
  }
  small=$PROJECT/configs/cls/resnet/resnet50_cifar10_cpu.yaml
  refuse 78 'DATA_PATH nix: no such folder' run.sh nix 2
  refuse 2 'RANK_SIZE 3: write 1, 2, 4 or 8' run.sh data 3
  refuse 2 'RANK_SIZE is missing' run.sh data
  refuse 78 'each of 8 ranks: less than one batch of 16' run.sh --device_target CPU --config "$small" data 8
  ends 78 '*/model/nam: no such key: "nam"; did you mean "name"?*read as a config of tools/train.py*' \
    bash "$SCRIPTS/run.sh" --device_target CPU --config "$small" data 2 -- -o model.nam=lenet5
  refuse 78 'semi_auto_parallel does not run on CPU' run_pipeline.sh data CPU
  refuse 78 'semi_auto_parallel does not run on CPU' run_dataset_slice.sh --device_target CPU data 8
  refuse 2 'unknown option --devices' run_cpu.sh --devices '[0,1)' "$small"
  truncate -s -1 data/data_batch_2.bin
  refuse 78 'data_batch_2.bin has 61459 bytes, not a multiple of the 3073 bytes of a record' \
    run.sh --device_target CPU --config "$small" data 2
}
