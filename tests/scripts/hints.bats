#!/usr/bin/env bats
# What a script says to type on a machine without NPUs or GPUs is a line that works when it is pasted.

load ../helper

setup_file() {
  printf 'address_%d=10.1.1.1%d\n' 0 0 1 1 2 2 3 3 4 4 5 5 6 6 7 7 >"$BATS_FILE_TMPDIR/hccn.conf"
  python "$PROJECT/hccl_tools/hccl_tools.py" --device_num '[0,2)' --hccn_conf "$BATS_FILE_TMPDIR/hccn.conf" \
    --server_ip 127.0.0.1 --stdout >"$BATS_FILE_TMPDIR/table.json" 2>/dev/null
}

setup() {
  setup_world
  HCCN=()
  compgen -G '/dev/davinci*' && skip "there are NPUs here"
  command -v npu-smi nvidia-smi && skip "there may be NPUs or GPUs here"
  mkdir "a 'data' set"
  printf 'localhost slots=2\n' >'host file'
  cp "$BATS_FILE_TMPDIR/table.json" .
}

# words SCRIPT: what people type after it, in WORDS; nothing, if it has no hint.
words() {
  case $1 in
    run.sh) WORDS=("a 'data' set" 2) ;;
    run_dataset_slice.sh) WORDS=("a 'data' set" 8) ;; # into which the config cuts images
    run_pipeline.sh) WORDS=("a 'data' set" Ascend) ;;
    run_cluster.sh) WORDS=("a 'data' set" table.json 2 0) ;;
    run_gpu.sh) WORDS=(-n 2 "a 'data' set") ;;
    run_mpirun_1.sh) WORDS=(localhost:2) ;;
    run_mpirun_2.sh) WORDS=('host file') ;;
    run_mpirun.sh) WORDS=(-n 2 -x 'A=b  c' config.yaml) ;;
    run_msrun.sh) WORDS=(--worker_num=2 config.yaml -- -o 'a=b c') ;;
    msrun_launcher.sh) WORDS=("net.py 'a  b'" 2) ;;
    launch.sh) WORDS=(--device-target Ascend -n 2 config.yaml) ;;
    ascend?p.sh) WORDS=(config.yaml) ;;
    # CPU is what it is for; they look at the machine; a pod's words are in its manifest; Slurm knows its nodes
    run_cpu.sh | doctor.sh | check_network.sh | preflight.sh | run_pod.sh | run_slurm.sh) WORDS=() ;;
    *) fail "$1: write here what people type after it" ;;
  esac
}

# here SCRIPT: whether what starts its ranks is on this machine.
here() {
  case $1 in
    *mpirun* | *gpu* | */distributed_data_parallel/run.sh) command -v mpirun >/dev/null ;;
    *msrun*) command -v msrun >/dev/null && has_mindspore ;;
  esac
}

# hint COMMAND...: the line that it says to type, in HINT.
hint() {
  run --separate-stderr "$@"
  [[ $status -eq 78 && ${#stderr_lines[@]} -eq 1 && $stderr == *'; to '*': '*bash* ]] || fail "$* ($status): $stderr"
  HINT=${stderr##*"; to try the launch without NPUs: "}
  HINT=${HINT##*"; to try the launch without GPUs: "}
  HINT=${HINT##*"; on CPU it would be refused; to see its plan: "}
}

# pasted LINE: what it does in a shell of a person who is in this folder.
pasted() {
  run --separate-stderr bash -c "$1"
}

# bats test_tags=slow
@test "each script's hint starts ranks on CPU: those of a trainer of this folder" {
  local path script
  mkdir tools
  cp "$FIXTURES/stub_trainer.py" tools/train.py
  cp "$FIXTURES/stub_trainer.py" net.py
  for path in "$SCRIPTS"/*.sh; do
    script=${path##*/}
    words "$script"
    [[ ${#WORDS[@]} -gt 0 ]] && here "$script" || continue
    rm -f "$STUB_OUT"/*
    PYTHONPATH=$FIXTURES/stub_mindspore
    [[ $script != *msrun* ]] || PYTHONPATH=$FIXTURES/quick_msrun # the real msrun; its trainers are stubs
    hint bash "$path" "${WORDS[@]}"
    [[ $HINT == "bash $path "*CPU* ]] || fail "$script: $HINT"
    pasted "$HINT"
    [[ $status -eq 0 && -e $STUB_OUT/rank_0.json ]] || fail "$HINT" "$stderr"
  done
}

# bats test_tags=slow
@test "each script's hint for this project's trainer, as a plan: on CPU, or on NPUs where CPU cuts no net" {
  local path script
  for path in "$SCRIPTS"/*.sh; do
    script=${path##*/}
    words "$script"
    [[ ${#WORDS[@]} -gt 0 ]] && here "$script" || continue
    [[ ${WORDS[*]} != *config.yaml* && $script != msrun_launcher.sh ]] || continue
    hint bash "$path" --dry_run "${WORDS[@]}"
    pasted "$HINT"
    [[ $status -eq 0 && $output == *"# $script: "*' ranks; this is what it would start'* ]] || fail "$HINT" "$stderr"
    case $script in
      run_dataset_slice.sh | run_pipeline.sh) [[ $HINT == *' --no_check '* ]] || fail "$HINT" ;;
      run.sh | run_gpu.sh) [[ $HINT == *' --device_target CPU '*_cpu.yaml* || $HINT == *_cpu.yaml*' --device_target CPU '* ]] || fail "$HINT" ;;
      *) [[ $HINT == *' --device_target CPU '* ]] || fail "$HINT" ;;
    esac
  done
}

# bats test_tags=slow
@test "each example's hint, as a plan" {
  local path script
  for path in "$PROJECT"/examples/*/*.sh; do
    script=${path##*/}
    words "$script"
    [[ ${#WORDS[@]} -gt 0 ]] && here "$path" || continue
    [[ $path != */distributed_data_parallel/run.sh ]] || WORDS=(-n 2)
    hint bash "$path" --dry_run "${WORDS[@]}"
    pasted "$HINT"
    [[ $status -eq 0 && $output == *"${path%/*}/"*.py* ]] || fail "$HINT" "$stderr"
    [[ $path != */distributed_data_parallel/* || $output == *DATA_PATH=./MNIST_Data/train/* || $HINT == DATA_PATH=* ]] || fail "$HINT"
  done
}

# bats test_tags=slow
@test "each example's program has a hint that works" {
  local path
  for path in "$PROJECT"/examples/*/*.py; do
    grep -q __main__ "$path" || continue
    hint bash "$SCRIPTS/run.sh" --dry_run "a 'data' set" 2 "$path"
    pasted "$HINT"
    [[ $status -eq 0 && $output == *"$path"* ]] || fail "$HINT" "$stderr"
  done
}

@test "where nothing would do, there is no hint" {
  refused 78 'ascend2p.sh: no Ascend NPU on this machine: looked for /dev/davinci0 and asked npu-smi' \
    bash "$SCRIPTS/ascend2p.sh" --rank_table nowhere.json --train_script "$FIXTURES/stub_trainer.py" config.yaml
}

@test "a hint in Chinese" {
  LAUNCH_LANG=zh ends 78 'run.sh: *；若要*：bash *' bash "$SCRIPTS/run.sh" --dry_run "a 'data' set" 2
}
