#!/usr/bin/env bats
# --import_once and five trainers with the real MindSpore: losses and weights are the same to the last bit in both ways.

# bats file_tags=thorough,trains
load ../helper

setup() {
  setup_training
  need_mindspore
  TWO=(--device_target CPU -n 2 --console none)
}

# generated SCRIPT ARGUMENTS...: data that tools/prepare_SCRIPT.py makes, in the folder data.
generated() {
  python "$PROJECT/tools/prepare_$1.py" data "${@:2}" 2>prepare.log || fail "$(<prepare.log)"
}

# same NUMBER CHECKPOINTS COMMAND...: two ranks that train in both ways print the same losses, accuracies and digests, so
# many in all, and save so many checkpoints with the same weights; --import_once comes from the variable for every launch
same() {
  local way
  for way in own once; do
    mkdir "$way"
    [[ $way == own ]] || export MSLAUNCH_OPTIONS=--import_once
    ends 0 '*' timeout 500 "${@:3}" --log_dir "$way" "${LAST[@]}" || return
    [[ $stderr != *'imports for itself'* ]] || fail "$stderr" || return
    grep -hE 'loss is|^accuracy|^the weights' "$way"/latest/rank_[01].log >"$way.txt"
    unset MSLAUNCH_OPTIONS
  done
  [[ "$(wc -l <own.txt)" -eq $1 ]] || fail "$(<own.txt)" || return
  diff own.txt once.txt || return
  [[ "$(same_weights)" -eq $2 ]] || fail "not $2 checkpoints: $(ls own/latest/ckpt/*)"
}

# same_weights: how many checkpoints both ways have; it fails if they differ
same_weights() {
  python - own/latest/ckpt once/latest/ckpt <<'PY'
import pathlib, sys

import mindspore

own, once = (sorted(pathlib.Path(folder).resolve().glob("rank_*/*.ckpt")) for folder in sys.argv[1:])
assert [path.name for path in own] == [path.name for path in once]
for pair in zip(own, once):
    one, other = (mindspore.load_checkpoint(str(path)) for path in pair)
    assert one.keys() == other.keys() and len(one) > 1
    assert all((one[name].asnumpy() == other[name].asnumpy()).all() for name in one), pair
print(len(own))
PY
}

@test "MNIST: LeNet-5" {
  LAST=(-- -o scheduler.num_epochs=1 system.log_interval=4)
  same 14 2 bash "$SCRIPTS/launch.sh" "${TWO[@]}" "$PROJECT/configs/mnist/lenet5_digits.yaml"
}

@test "ResNet-50, with random crops" {
  [[ ${SLOW_TESTS-} == 1 ]] || skip "takes more than a minute; SLOW_TESTS=1 runs it"
  generated cifar10 --images 10
  LAST=(data 2 -- -o scheduler.num_epochs=1 system.log_interval=1 train.loader.batch_size=8)
  sed '/^eval:/,$d' "$PROJECT/configs/cls/resnet/resnet50_cifar10_cpu.yaml" >no_eval.yaml
  same 6 2 bash "$SCRIPTS/run.sh" --device_target CPU --config no_eval.yaml
}

@test "CRNN, with CTC" {
  [[ ${SLOW_TESTS-} == 1 ]] || skip "takes more than a minute; SLOW_TESTS=1 runs it"
  generated text --scenes 1 --words 128
  LAST=(-- -o scheduler.num_epochs=1 system.log_interval=1 system.val_while_train=False)
  DATA_PATH=data same 8 2 bash "$SCRIPTS/launch.sh" "${TWO[@]}" "$PROJECT/configs/rec/crnn/crnn_resnet34_zh.yaml"
}

@test "a net in the form of the tutorials" {
  cp "$FIXTURES/trainers/tutorial_net.py" .
  LAST=(tutorial_net.py)
  same 32 0 bash "$SCRIPTS/launch.sh" "${TWO[@]}"
}

@test "a package, by -m: worker processes, a thread, sinks, and PyNative" {
  local way
  mkdir package
  cp "$FIXTURES/trains_on_data.py" package/rows.py
  printf 'import sys\nfrom .rows import main\nmain(sys.argv[1], 2)\n' >package/__main__.py
  for way in processes thread sink pynative; do
    LAST=(-m package "$way")
    same 10 0 bash "$SCRIPTS/launch.sh" "${TWO[@]}"
    rm -r own once
  done
}

@test "what no seed decides differs from rank to rank, also in forks" {
  cat >unseeded.py <<'PY'
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Normal, initializer

print("differs numpy", np.random.rand())
print("differs normal", ops.standard_normal((2,)))
print("differs initial", initializer(Normal(), (2,)).init_data())
print("differs dense", nn.Dense(3, 1).weight.value(), flush=True)
PY
  ends 0 '*' timeout 300 bash "$SCRIPTS/launch.sh" "${TWO[@]}" --import_once unseeded.py
  [[ $stderr != *'imports for itself'* && $(grep -c ^differs logs/latest/rank_0.log) -eq 4 ]] || fail "$stderr" "$(<logs/latest/rank_0.log)"
  run ! grep '^differs' <(comm -12 <(sort logs/latest/rank_0.log) <(sort logs/latest/rank_1.log))
}
