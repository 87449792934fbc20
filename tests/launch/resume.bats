#!/usr/bin/env bats
# --resume: which word is its value, what --dry_run shows, and everything that is refused before a rank starts.

load ../helper

# black_digits FOLDER: as many images as the demo's digits are, all black, made without NumPy: the plan reads the headers.
black_digits() {
  python - "$1" <<'PY'
import os, struct, sys
for part, samples in (("train/train", 1438), ("test/t10k", 359)):
    os.makedirs(os.path.join(sys.argv[1], os.path.dirname(part)))
    for kind, header, size in (
        ("images-idx3", struct.pack(">4I", 0x803, samples, 8, 8), 64),
        ("labels-idx1", struct.pack(">2I", 0x801, samples), 1),
    ):
        with open(os.path.join(sys.argv[1], f"{part}-{kind}-ubyte"), "wb") as file:
            file.write(header + bytes(samples * size))
PY
}

setup() {
  setup_world
  black_digits data
  cp "$PROJECT/configs/mnist/lenet5_digits.yaml" config.yaml
  sed -i 's|data/digits|data|' config.yaml
}

# a_run NAME [RANKS]: a made-up run of config.yaml with the checkpoints of one epoch
a_run() {
  mkdir -p "runs/$1"
  python - "$PROJECT" "runs/$1" "${2-2}" <<'PY'
import json, os, sys
sys.path.insert(0, sys.argv[1])
from tools.trainer.checkpoints import labels
run, ranks = os.path.abspath(sys.argv[2]), int(sys.argv[3])
trainer = ["python", "-u", os.path.join(sys.argv[1], "tools", "train.py"), "--config", "config.yaml"]
with open(os.path.join(run, "launch.json"), "w") as file:
    json.dump({"trainer": trainer, "folder": os.getcwd(), "outcome": {}}, file)
for rank in range(ranks):
    path = os.path.join(run, "ckpt", f"rank_{rank}", "lenet5-1_22.ckpt")
    os.makedirs(os.path.dirname(path))
    with open(path, "wb") as file:
        file.write(b"weights")
    label = labels.Label(model="lenet5", mode="data_parallel", run=5, epoch=1, steps=22, rank=rank, ranks=ranks, whole=1)
    labels.write(path, labels.sized(path, label))
PY
  ln -sfn "$1" runs/latest
}

# own SCRIPT ARGUMENT...: the script with the project's own trainer
own() {
  bash "$SCRIPTS/$1" --device_target CPU "${@:2}"
}

# refuses STATUS PATTERN ARGUMENT...
refuses() {
  refused "$1" "$2" own ascend2p.sh --log_dir runs "${@:3}"
}

# resumes NAME ARGUMENT...: the launch would go on from the run of this name
resumes() {
  ends 0 "*ascend2p.sh: continues after epoch 1, from runs/$1/ckpt*" own ascend2p.sh --log_dir runs --dry_run "${@:2}"
  [[ $output == *"; it continues after epoch 1, from runs/$1/ckpt"* ]] || fail "$output"
  [[ $output == *"train.resume_from="*"/runs/$1/ckpt"* ]] || fail "$output"
}

# bats test_tags=slow
@test "the newest run, a named run, and the link latest" {
  a_run ascend2p-20260101T000000Z-1
  a_run ascend2p-20260102T000000Z-1
  resumes ascend2p-20260102T000000Z-1 --resume config.yaml
  resumes ascend2p-20260102T000000Z-1 config.yaml --resume
  resumes ascend2p-20260102T000000Z-1 --resume=newest config.yaml
  resumes ascend2p-20260102T000000Z-1 --resume runs/latest config.yaml
  resumes ascend2p-20260101T000000Z-1 --resume runs/ascend2p-20260101T000000Z-1/ckpt config.yaml
  resumes ascend2p-20260101T000000Z-1 config.yaml --resume=runs/ascend2p-20260101T000000Z-1 -- -o scheduler.num_epochs=3
}

@test "another number of ranks: the copies are in the plan" {
  a_run ascend2p-20260101T000000Z-1
  ends 0 '*come from 2 ranks; they are copied for 4*' own ascend4p.sh --log_dir runs --dry_run --resume config.yaml
  [[ $output == *'/tools/convert_ckpt.py '*/ckpt*/resumed*' --ranks 4'$'\n'* ]] || fail "$output"
  [[ $output == *"train.resume_from="*"/resumed"* ]] || fail "$output"
}

# bats test_tags=slow
@test "a word that is neither a run nor an argument is refused with both spellings" {
  mkdir runs
  refuses 2 '*--resume runs/no: this is not the folder of a run*--resume=FOLDER*--resume=newest runs/no;*' --resume runs/no config.yaml
  refuses 2 '*--resume lates: this is not the folder of a run*' --resume lates config.yaml
  refuses 2 '*--resume runs: this is not the folder of a run*' --resume runs config.yaml
  refuses 2 '*--resume runs/no: this is not the folder of a run*' config.yaml --resume runs/no
  refuses 2 '*--resume needs a value: --resume \[RUN\]*' --resume= config.yaml
  refuses 2 '*PROGRAM or CONFIG is missing*' --resume
}

# bats test_tags=slow
@test "words that are arguments stay arguments" {
  mkdir runs data_set
  refuses 78 '*--resume: no run of config.yaml in runs has checkpoints*' --resume config.yaml
  refuses 2 '*--resume works for this project*' --resume ls
  refuses 2 '*--resume works for this project*' --resume -m json.tool
  refused 2 '*--resume works*RESUME=1 if it reads that; for restarts: --restart_args' launch ascend2p.sh --resume config.yaml
  refused 78 '*--resume: no run of config.yaml in runs has checkpoints*' \
    own run.sh --log_dir runs --config config.yaml --resume data 2
  refused 2 '*--resume data_sat/x: this is not the folder of a run*' own run.sh --config config.yaml --resume data_sat/x 2
}

@test "RESUME=1 of the user's, without a checkpoint, is not trained anew in silence" {
  mkdir runs
  export RESUME=1
  refuses 78 '*RESUME=1: a new run has no checkpoint of its own; type --resume to go on from the newest run*' config.yaml
  refuses 78 '*RESUME=1: kept has no checkpoint*' config.yaml -- -o train.ckpt_save_dir=kept
}

@test "train.resume_from through logs/latest is the run that latest is now, and not this launch" {
  a_run ascend2p-20260101T000000Z-1
  ends 0 '*' own ascend2p.sh --log_dir runs --dry_run config.yaml -- -o train.resume_from=runs/latest/ckpt
  [[ $output == *'train.resume_from='*'/runs/ascend2p-20260101T000000Z-1/ckpt'* ]] || fail "$output"
  ends 0 '*note: runs/latest/ckpt leads through the link latest*name the run: runs/ascend2p-20260101T000000Z-1/ckpt*' \
    launch ascend2p.sh --log_dir runs --dry_run config.yaml -- --ckpt runs/latest/ckpt
}

# bats test_tags=slow
@test "our trainer typed as a program goes on in the same way" {
  local -r train=$PROJECT/tools/train.py
  mkdir runs
  RESUME=1 refuses 78 '*RESUME=1: a new run has no checkpoint of its own*' "$train" --config config.yaml
  refuses 78 '*--resume: no run of config.yaml in runs*' --resume "$train" -c config.yaml
  rmdir runs
  a_run ascend2p-20260101T000000Z-1
  resumes ascend2p-20260101T000000Z-1 --resume "$train" --config=config.yaml -o scheduler.num_epochs=3
}

@test "TAB after --resume: files for a run or a config, and options" {
  cd "$PROJECT"
  source scripts/completion.bash
  COMP_WORDS=(bash scripts/ascend2p.sh --resume --dry) COMP_CWORD=3 COMPREPLY=()
  COMP_LINE=${COMP_WORDS[*]} COMP_POINT=${#COMP_LINE}
  _mindspore_launch bash --dry --resume
  [[ ${COMPREPLY[*]} == --dry_run ]] || fail "${COMPREPLY[*]}"
}
