#!/usr/bin/env bats
# --import_once with the real MindSpore: losses and weights to the last bit, and to each rank its own device.

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

# trained FOLDER COMMAND...: a training of two ranks; FOLDER has its logs, FOLDER.txt losses, accuracies and digests
trained() {
  ends 0 '*' timeout 500 "${@:2}" --log_dir "$1" "${LAST[@]}" || return
  [[ $stderr != *'imports for itself'* ]] || fail "$stderr" || return
  grep -hE 'loss is|^accuracy|^the weight' "$1"/latest/rank_[01].log >"$1.txt"
}

# like_own FOLDER NUMBER CHECKPOINTS: this training printed the same as the one in own, so many lines, and saved so many
# checkpoints with the same weights
like_own() {
  [[ "$(wc -l <own.txt)" -eq $2 ]] || fail "not $2 lines: $(<own.txt)" || return
  diff own.txt "$1.txt" || return
  [[ "$(same_weights "$1")" -eq $3 ]] || fail "not $3 checkpoints: $(ls own/latest/ckpt/*)"
}

# same_weights FOLDER: how many checkpoints the trainings in own and FOLDER both have; it fails if they differ
same_weights() {
  python - own/latest/ckpt "$1/latest/ckpt" <<'PY'
import pathlib, sys

own, other = (sorted(pathlib.Path(folder).resolve().glob("rank_*/*.ckpt")) for folder in sys.argv[1:])
assert [path.name for path in own] == [path.name for path in other]
if own:
    import mindspore
for pair in zip(own, other):
    one, two = (mindspore.load_checkpoint(str(path)) for path in pair)
    assert one.keys() == two.keys() and len(one) > 1
    assert all((one[name].asnumpy() == two[name].asnumpy()).all() for name in one), pair
print(len(own))
PY
}

# same NUMBER CHECKPOINTS COMMAND...: two ranks that train in both ways print and save the same; --import_once comes from
# the variable for every launch
same() {
  trained own "${@:3}" || return
  import_once
  trained once "${@:3}" || return
  like_own once "$1" "$2"
}

@test "real MindSpore: LeNet-5 has the same losses and weights, also under mpirun, whose numbers MindSpore reads at its import" {
  LAST=("$PROJECT/configs/mnist/lenet5_digits.yaml" -- -o scheduler.num_epochs=1 system.log_interval=1)
  same 46 2 bash "$SCRIPTS/launch.sh" "${TWO[@]}" # of each rank 22 losses and the accuracy
  need mpirun
  trained under_mpirun bash "$SCRIPTS/run_mpirun.sh" "${TWO[@]}"
  like_own under_mpirun 46 2
}

@test "real MindSpore: a package, by -m, has the same losses: worker processes, a thread, sinks, PyNative, and a net in the form of the tutorials" {
  mkdir package
  cp "$FIXTURES/trains_on_data.py" package/rows.py
  cp "$FIXTURES/trainers/tutorial_net.py" package/net.py
  printf '%s\n' 'import sys' 'from . import net' 'from .rows import main' 'for way in sys.argv[1:]:' '    main(way, 2)' >package/__main__.py
  LAST=(-m package processes thread sink pynative)
  # of each rank 15 losses and the weights, then 4 times 4 losses and a digest
  same 72 0 bash "$SCRIPTS/launch.sh" "${TWO[@]}"
  # each rank gets the weights that only others' data show
  [[ $(grep -cFx 'the weights of 2 ranks are [1.0, 2.0]' once.txt) -eq 2 ]] || fail "$(<once.txt)"
}

@test "real MindSpore: ResNet-50 has the same losses and weights, with random crops" {
  [[ ${SLOW_TESTS-} == 1 ]] || skip "takes more than a minute; SLOW_TESTS=1 runs it"
  generated cifar10 --images 10
  LAST=(data 2 -- -o scheduler.num_epochs=1 system.log_interval=1 train.loader.batch_size=8)
  sed '/^eval:/,$d' "$PROJECT/configs/cls/resnet/resnet50_cifar10_cpu.yaml" >no_eval.yaml
  same 6 2 bash "$SCRIPTS/run.sh" --device_target CPU --config no_eval.yaml
}

@test "real MindSpore: CRNN has the same losses and weights, with CTC" {
  [[ ${SLOW_TESTS-} == 1 ]] || skip "takes more than a minute; SLOW_TESTS=1 runs it"
  generated text --scenes 1 --words 128
  LAST=("$PROJECT/configs/rec/crnn/crnn_resnet34_zh.yaml" -- -o scheduler.num_epochs=1 system.log_interval=1 system.val_while_train=False)
  DATA_PATH=data same 8 2 bash "$SCRIPTS/launch.sh" "${TWO[@]}"
}

@test "real MindSpore: each rank has its own device, also in DEVICE_ID after init(), or the one that it chooses, and its own chance" {
  cat >device.py <<'PY'
import os

import mindspore
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Normal, initializer
from mindspore.communication import init


def tell():
    print("has", mindspore.get_context("device_id"), os.environ["DEVICE_ID"], rank)


rank = int(os.environ["RANK_ID"])
if rank > 1:
    mindspore.set_context(device_id=rank + 2)
    tell()  # now, because init() takes the device of DEVICE_ID
init()
if rank < 2:
    tell()
print("differs numpy", np.random.rand())
print("differs normal", ops.standard_normal((2,)))
print("differs initial", initializer(Normal(), (2,)).init_data())
print("differs dense", nn.Dense(3, 1).weight.value(), flush=True)
PY
  ends 0 '*' timeout 300 bash "$SCRIPTS/launch.sh" --device_target CPU -n 4 --console none --import_once device.py
  [[ $stderr != *'imports for itself'* ]] || fail "$stderr"
  [[ "$(grep -h '^has' logs/latest/rank_?.log)" = $'has 0 0 0\nhas 1 1 1\nhas 4 2 2\nhas 5 3 3' ]] || fail "$(head logs/latest/rank_*.log)"
  [[ "$(grep -h '^differs' logs/latest/rank_?.log | sort -u | wc -l)" -eq 16 ]] || fail "$(grep '^differs' logs/latest/rank_?.log)"
}

@test "real MindSpore: under mpirun each rank has its own device and number, and hears what MindSpore says of them" {
  need mpirun
  printf '%s\n' 'import os' 'import mindspore' 'print("has", mindspore.get_context("device_id"), os.environ["DEVICE_ID"], os.environ["RANK_ID"], os.environ["RANK_SIZE"])' \
    'from mindspore.communication import init, get_rank' 'init()' 'print("is", get_rank())' >device.py
  local way
  for way in '' --import_once; do
    GLOG_v=2 ends 0 '*' timeout 300 bash "$SCRIPTS/run_mpirun.sh" "${TWO[@]}" ${way:+"$way"} device.py
    [[ $stderr != *'imports for itself'* ]] || fail "$stderr"
    [[ "$(grep -h '^has\|^is' logs/latest/rank_{0,1}.log)" = $'has 0 0 0 2\nis 0\nhas 1 1 1 2\nis 1' ]] || fail "$(head logs/latest/rank_*.log)"
    grep -q 'both dynamic cluster and OpenMPI' logs/latest/rank_1.log || fail "$(<logs/latest/rank_1.log)"
  done
}
