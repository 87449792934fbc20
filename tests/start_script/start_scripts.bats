#!/usr/bin/env bats
# --zoo: start scripts of the forms that the model zoo and mindformers have, and what becomes of each.

# bats file_tags=thorough
load ../helper

# the rank tables that all tests have
setup_file() {
  cd "$BATS_FILE_TMPDIR" || return
  printf 'address_%d=10.1.1.1%d\n' 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 >hccn.conf
  table 2 2.json
  table 4 4.json
  table 4 upper.json 4
}

setup() {
  setup_world
  cd "$BATS_TEST_TMPDIR" || return # such scripts cannot do with the blanks of our world
  cp -r "$FIXTURES/zoo/." "$WORLD/hccn.conf" .
  export TMPDIR=$BATS_TEST_TMPDIR/temporary # the launches of other tests have folders there, too
  mkdir -p data "$TMPDIR" && touch model.ckpt
  cd scripts || return
  cp "$BATS_FILE_TMPDIR"/*.json .
}

# table RANKS FILE [FIRST_DEVICE]: a rank table of this host
table() {
  python "$PROJECT/hccl_tools/hccl_tools.py" --device_num "[${3-0},$((${3-0} + $1)))" --server_ip 127.0.0.1 \
    --hccn_conf hccn.conf --output "$2" 2>/dev/null >/dev/null
}

# zoo WORD...: the launch of a start script, on this machine's processors
zoo() {
  bash "$SCRIPTS/launch.sh" --device_target CPU --zoo "$@"
}

# each_rank PATTERN...: the logs of the newest run are so many, and each begins with a line that fits
each_rank() {
  local -i at=0
  local -a logs=(logs/latest/rank_*.log)
  local line pattern
  [[ ${#logs[@]} -eq $# ]] || fail "not $# logs: ${logs[*]}" "$stderr" || return
  for pattern; do
    line=$(grep '^rank ' "${logs[at]}")
    at+=1
    # shellcheck disable=SC2053 # a pattern is meant
    [[ $line == $pattern ]] || fail "not \"$pattern\": $line" || return
  done
}

@test "a folder for each rank: rank table, data, checkpoint" {
  ends 0 '*run_distribute_train.sh starts 4 ranks on devices 0-3: python train.py --run_distribute=True --dataset_path=data --pre_trained=model.ckpt*rank table: */4.json*' \
    zoo run_distribute_train.sh 4.json ../data ../model.ckpt
  each_rank "rank "{0..3}" of 4 on "?" in train_parallel"?": --run_distribute=True --dataset_path=data --pre_trained=model.ckpt"
  [[ $output == *'start training for rank 3, device 3'* && $output == *'READ_BY_TRAINER is two words'* ]] || fail "$output"
  [[ "$(<train_parallel2/log)" == "launch.sh --zoo starts this command; its output is in the run's folder in $PWD/logs" ]]
  [[ $(python -c 'import json; print(json.load(open("logs/latest/launch.json"))["typed"])') == *'--zoo run_distribute_train.sh 4.json ../data ../model.ckpt' ]]
  nobody_left
  ends 0 '*' zoo bash run_distribute_train.sh 4.json ../data # again, and with bash before it
  each_rank "rank "{0..3}" of 4 on "?" in train_parallel"?": --run_distribute=True --dataset_path=data"
}

@test "cores of cpuinfo and taskset, also where there are fewer cores than ranks" {
  ends 0 '*4 ranks on devices 0-3*' zoo run_distribute_train_cores.sh 4.json ../default_config.yaml
  each_rank "rank "{0..3}" of 4 on "?" in scripts: --device_target Ascend --config_path=../default_config.yaml"
  printf '#!/bin/bash\nexport RANK_ID=0\ntaskset -c 1 python ../train.py &\n' >one_core.sh
  (($(nproc) > 1)) || skip 'needs two cores'
  ends 0 '*' zoo one_core.sh
  [[ "$(<logs/latest/ranks.sh)" == *'exec taskset -c 1 '* ]] || fail "$(<logs/latest/ranks.sh)"
}

@test "words per rank instead of DEVICE_ID; a script in a script" {
  ends 0 '*starts 2 ranks: python *' zoo run_distribute_train_arguments.sh 2.json
  each_rank "rank 0 of 2 on 0 in scripts: --device_id=0 --rank=0 --group_size=2" "rank 1 of 2 on 1 in scripts: --device_id=1 --rank=1 *"
  ends 0 '*starts 2 ranks: python *' zoo run_distribute_train_nested.sh 2.json
  each_rank "* --device_id=0 *" "* --device_id=1 *"
}

@test "the rank table last and by its older name, subshells, typed in another folder" {
  cd .. || return
  ends 0 '*2 ranks on devices 0,1*' zoo scripts/run_distribute_train_table_last.sh data model.ckpt "$PWD/scripts/2.json"
  each_rank "rank "{0,1}" of 2 on "?" in train_parallel"?": --data_dir=data --pretrained_backbone=model.ckpt"
  [[ $stderr == *"rank table: $PWD/scripts/2.json"* && "$(<logs/latest/rank_0.env)" != *HCCL_CONFIG_PATH* ]] || fail "$stderr"
}

@test "devices 4 to 7, nohup, python -u" {
  ends 0 '*4 ranks on devices 4-7*' zoo run_distribute_train_upper.sh 4 upper.json
  each_rank "rank 0 of 4 on 4 in scripts: --epoch_size 5" "rank 1 of 4 on 5 *" "rank 2 of 4 on 6 *" "rank 3 of 4 on 7 *"
}

@test "variables before the command, python3, wait, set -e" {
  ends 0 '*2 ranks on devices 0,1*' zoo run_distribute_train_wait.sh 2.json 2
  each_rank "rank "{0,1}" of 2 on "?" in scripts: --lr 0.1"
  [[ $output == *'training has ended'* ]]
}

@test "plain sh, a function for each rank, words with blanks" {
  ends 0 '*2 ranks on devices 0,1*' zoo sh run_distribute_train_while.sh 2.json
  each_rank "rank 0 of 2 on 0 in scripts: --name a net --rank_of 0" "rank 1 of 2 on 1 in scripts: --name a net --rank_of 1"
}

@test "steps on the way are done; a module is a trainer, too" {
  ends 0 '*' zoo run_distribute_train_steps.sh 2.json images
  each_rank "* --version 2.10 --data list_of_images" "* --version 2.10 --data list_of_images"
  ends 0 '*' zoo run_distribute_train_module.sh 2.json
  each_rank "rank 0 of 2 on 0 in scripts: --arch net0" "rank 1 of 2 on 1 in scripts: --arch net1"
}

@test "mindformers: run_distribute.sh, run_singlenode.sh, run_standalone.sh" {
  ends 0 '*4 ranks on devices 0-3*' zoo run_distribute.sh 4.json ../default_config.yaml [0,4] train
  each_rank "rank "{0..3}" of 4 on "?" in mf_parallel"?": --config=default_config.yaml --use_parallel=True --run_mode=train"
  ends 0 '*4 ranks on devices 4-7*' zoo run_distribute.sh upper.json ../default_config.yaml '[4,8]' finetune
  each_rank "rank 0 of 4 on 4 in mf_parallel4: *" "rank 1 of 4 on 5 *" "rank 2 of 4 on 6 *" "rank 3 of 4 on 7 *"
  ends 0 '*4 ranks on devices 0-3*' zoo run_singlenode.sh "python ../run_mindformer.py --config ../default_config.yaml" 4.json [0,4] 4
  each_rank "rank "{0..3}" of 4 on "?" in scripts: --config ../default_config.yaml"
  ends 0 '*starts 1 rank on device 3*' zoo run_standalone.sh ../default_config.yaml 3 finetune
  each_rank "rank 0 of 1 on 3 in mf_standalone: --config=default_config.yaml --use_parallel=False --run_mode=finetune"
  [[ "$(<logs/latest/rank_0.env)" != *MS_ROLE* ]] || fail 'one rank joins no job'
}

@test "mindformers: run_multinode.sh, run_distribute.sh on a server of several" {
  python - >two.json <<'PY'
import json
def server(name, first):
    devices = [{"device_id": str(n), "device_ip": f"10.78.{first}.{n + 1}", "rank_id": str(first + n)} for n in range(2)]
    return {"server_id": name, "device": devices}
print(json.dumps({"version": "1.0", "server_count": "2", "server_list": [server("10.255.255.1", 0), server("127.0.0.1", 2)], "status": "completed"}))
PY
  ends 0 '*run_multinode.sh starts 2 ranks of 4 on devices 0,1: python ../train.py*2 ranks*' \
    zoo run_multinode.sh "python ../train.py" two.json [2,4] 4
  each_rank "rank 2 of 4 on 0 in scripts:" "rank 3 of 4 on 1 in scripts:"
  ends 0 '*' zoo run_distribute.sh two.json ../default_config.yaml [2,4] train 4
  each_rank "rank 2 of 4 on 0 in mf_parallel2: *" "rank 3 of 4 on 1 in mf_parallel3: *"
  ends 78 '*launch.sh: run_multinode.sh starts 1 of the 2 ranks that this host has in the rank table; *' \
    zoo run_multinode.sh "python ../train.py" two.json [2,3] 4
  ends 78 '*run_multinode.sh starts 2 ranks of 4*RANK_START 0 is the first rank of 10.255.255.1; this host is a different server: *' \
    zoo run_multinode.sh "python ../train.py" two.json [0,2] 4
}

@test "one rank: train, eval, and one for which the script waits" {
  ends 0 '*run_standalone_train.sh starts 1 rank on device 0: *' zoo run_standalone_train.sh data
  each_rank "rank 0 of 1 on 0 in train: --dataset_path=data"
  ends 0 '*starts 1 rank on device 2: python ../eval.py --data_path=data --ckpt_path=model.ckpt*' zoo run_eval.sh data model.ckpt 2
  each_rank "rank 0 of 1 on 2 in scripts: --data_path=data --ckpt_path=model.ckpt"
  ends 0 '*starts 1 rank: python *' zoo run_standalone_train_gpu.sh 1 data
  each_rank "rank 0 of 1 on 0 in scripts: --device_target=GPU --data data"
  [[ "$(<logs/latest/ranks.sh)" == *'export CUDA_VISIBLE_DEVICES=1'* ]]
}

@test "MindSpore's scheduler among the starts is the launch's own" {
  ends 0 '*run_distribute_train_scheduler.sh starts 3 ranks: python ../train.py --epochs 2*' zoo run_distribute_train_scheduler.sh 3
  each_rank "rank "{0..2}" of 3 on "?" in scripts: --epochs 2"
}

@test "mpirun in the script: run_mpirun.sh goes on, with its words" {
  need mpirun
  ends 0 '*launch.sh: the script starts mpirun; this launch goes on as: bash */run_mpirun.sh --device_target CPU --log_dir=*/logs *' \
    zoo run_distribute_train_gpu.sh 2 images
  each_rank "rank "{0,1}" of 2 on "?" in LOG: --run_distribute=True --device_target=GPU --dataset_path=images"
  [[ -e LOG/log_output ]]
  ends 0 '*' zoo -- run_distribute_train_gpu_nohup.sh 2
  each_rank "rank "{0,1}" of 2 on "?" in scripts: --device_num 2"
}

@test "msrun in the script: run_msrun.sh goes on" {
  need_mindspore
  export PYTHONPATH=$FIXTURES/quick_msrun
  sed -i "s/8118/$(python -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')/" run_msrun.sh
  ends 0 '*launch.sh: the script starts msrun; this launch goes on as: bash */run_msrun.sh --device_target CPU --log_dir=*' \
    zoo run_msrun.sh "../train.py --config a" 2
  [[ -d output/msrun_log/latest/ ]] && ln -s output/msrun_log logs # the script names another folder for logs
  each_rank "rank "{0,1}" of 2 on "?" in scripts: --config a"
}

@test "a failure is the launch's; nothing is left" {
  printf 'import os, sys, time\nsys.exit(5) if os.environ["RANK_ID"] == "1" else time.sleep(600)\n' >../train.py
  ends 5 '*rank 1 (device 1) exited with code 5*' zoo --zoo run_distribute_train_arguments.sh 2.json
  nobody_left
}

@test "what is none of these is said, and nothing trains" {
  local code message words
  printf 'echo nothing to do\n' >idle.sh
  printf 'python ../train.py one &\npython ../train.py two &\nexport RANK_ID=0\npython ../train.py three &\n' >several.sh
  printf 'export RANK_ID=1 RANK_SIZE=1\npython ../train.py &\n' >alone.sh
  printf 'export RANK_SIZE=4\nfor i in 0 1; do RANK_ID=$i python ../train.py & done\n' >half.sh
  printf 'for i in 0 2; do RANK_ID=$i python ../train.py & done\n' >gap.sh
  printf 'RANK_ID=no python ../train.py &\n' >word.sh
  printf 'mpirun -n 2 python a.py &\nmpirun -n 2 python b.py &\n' >twice.sh
  while IFS='|' read -r code words message; do
    # shellcheck disable=SC2086,SC2053 # several words; a pattern
    run --separate-stderr zoo $words
    [[ $status -eq $code && $stderr == *"launch.sh: "$message ]] || fail "$words: $status $stderr"
    [[ ! -e logs ]] || fail "$words: logs was made"
  done <<'LIST'
78|run_distribute_train.sh|run_distribute_train.sh ended with 1 before it started a training; what it printed is above
78|idle.sh|idle.sh started no training: *
78|several.sh|several.sh starts commands that are not ranks of one job*    python ../train.py one*RANK_ID=0 python ../train.py three
78|alone.sh|alone.sh starts ranks 1 to 1, but RANK_SIZE is 1: *
78|half.sh|half.sh starts 2 of 4 ranks and names no rank table*
78|gap.sh|gap.sh leaves out a rank: RANK_ID is 0, 2:*
78|word.sh|word.sh sets RANK_ID=no, which is not a number:*
78|twice.sh|twice.sh starts more than one job; *mpirun -n 2 python a.py*mpirun -n 2 python b.py
78|no_such.sh|no_such.sh: no such file in *; correct the path
2|../train.py|--zoo ../train.py: is not a shell script; leave out --zoo
2|../default_config.yaml|--zoo needs the start script, *
2|--dry_run idle.sh|--zoo with --dry_run: *
2|--rank_folder idle.sh|--zoo with --rank_folder: *
LIST
  ends 2 'launch.sh: --zoo with --dry_run: *' bash "$SCRIPTS/launch.sh" --dry_run --zoo idle.sh
  ends 2 'launch.sh: --zoo with -n: *' bash "$SCRIPTS/launch.sh" -n 2 --zoo idle.sh
  ends 2 'launch.sh: PROGRAM or CONFIG is missing; *' bash "$SCRIPTS/launch.sh" --zoo
  [[ -z $(ls "$TMPDIR") ]] || fail "left: $(ls "$TMPDIR")"
}

@test "without --zoo, as a program of every rank, such a script is refused with the line that launches it" {
  refused 78 'launch.sh: run_distribute_train.sh:29: the script itself starts the ranks, *' \
    bash "$SCRIPTS/launch.sh" --device_target CPU -n 4 bash run_distribute_train.sh 4.json ../data
  [[ $stderr =~ 'to launch what it starts: '(.*)'; to run it' ]] || fail "$stderr"
  ends 0 '*4 ranks on devices 0-3*' bash -c "${BASH_REMATCH[1]/--zoo/--device_target CPU --zoo}"
  each_rank "rank "{0..3}" of 4 on "?" in train_parallel"?": *"
  printf 'for i in 0; do export RANK_ID=$i; true & done\n' >quick.sh
  ends 0 '*' bash "$SCRIPTS/launch.sh" --device_target CPU --no_check -n 2 bash quick.sh
}
