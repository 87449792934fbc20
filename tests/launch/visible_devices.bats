#!/usr/bin/env bats
# Which devices the ranks see: ASCEND_RT_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES, and a container with some of its host's.
# And the driver's tools in their own folder.

load ../helper

setup() {
  setup_world
  # eight simulated NPUs
  export HCCN_SIM=$BATS_TEST_TMPDIR/cards NPU_SIM=$BATS_TEST_TMPDIR/cards
  mkdir "$HCCN_SIM"
  cp "$PROJECT/configs/demo_hccn.conf" "$HCCN_SIM/hccn.conf"
  echo 8 >"$HCCN_SIM/devices"
  echo none >"$HCCN_SIM/pod"
  PLAIN_PATH=$PATH
  PATH=$FIXTURES/bin:$PATH
  HCCN=()
}

# on_npus SCRIPT WORD...: the stub trainer on the simulated NPUs
on_npus() {
  stubbed "$1" --device_target Ascend "${@:2}"
  "${STUBBED[@]}"
}

# device_nodes DEVICE...: IN_CONTAINER is the start of a command that has only these NPUs in its /dev
device_nodes() {
  need_namespaces "for a /dev of its own" -m
  local name
  local -r dev=$BATS_TEST_TMPDIR/dev$*
  mkdir -p "$dev"
  for name in "${@/#/davinci}" davinci_manager devmm_svm hisi_hdc; do : >"$dev/$name"; done
  # the host's other files are links, which lead there by another name of its /dev
  # shellcheck disable=SC2016 # for the inner shell
  IN_CONTAINER=(unshare -m bash -c '
    mkdir -p "$0/.host" && mount --rbind /dev "$0/.host" || exit 99
    for file in /dev/*; do
      case $file in /dev/davinci* | /dev/devmm_svm | /dev/hisi_hdc) ;; *) ln -sf "/dev/.host/${file##*/}" "$0" ;; esac
    done
    mount --rbind "$0" /dev || exit 99
    exec "$@"' "$dev")
}

# clean: nothing is left of the launches so far
clean() {
  rm -rf "${STUB_OUT:?}"/* logs train.log
}

# device_ids: DEVICE_ID of each rank
device_ids() {
  places DEVICE_ID | tr '\n' ' '
}

# of_table: the device ids of the rank table that the ranks got, in the order of the ranks
of_table() {
  python - "$(recorded rank_0 'r["env"]["RANK_TABLE_FILE"]')" <<'PY'
import json, sys

devices = json.load(open(sys.argv[1]))["server_list"][0]["device"]
print(*(device["device_id"] for device in devices))
PY
}

# ranks_on DEVICES IDS: launch.json has these devices, and the ranks these values of DEVICE_ID
ranks_on() {
  [[ "$(launch_json '",".join(str(x["device"]) for x in r["ranks"])')" = "$1" ]] || fail "devices: $(launch_json 'r["ranks"]')"
  [[ "$(device_ids)" = "$2 " ]] || fail "DEVICE_ID: $(device_ids)"
}

# bats test_tags=slow
@test "as many ranks as devices are visible, the table for the physical ones, and DEVICE_ID counts from 0" {
  ASCEND_RT_VISIBLE_DEVICES=4,5 ends 0 '*ASCEND_RT_VISIBLE_DEVICES=4,5: DEVICE_ID 0,1 for devices 4,5*' on_npus launch.sh
  ranks_on 4,5 '0 1'
  [[ "$(of_table)" = '4 5' && "$(recorded rank_1 'r["env"]["ASCEND_RT_VISIBLE_DEVICES"]')" = 4,5 ]]
  clean
  ASCEND_RT_VISIBLE_DEVICES=4,5,6,7 ends 0 '*devices 4-7*' on_npus launch.sh -n 4
  ranks_on 4,5,6,7 '0 1 2 3'
  [[ "$(of_table)" = '4 5 6 7' ]]
}

# bats test_tags=slow
@test "--devices has physical ids, also under the variable; hidden ones are refused" {
  ASCEND_RT_VISIBLE_DEVICES=4,5,6,7 on_npus launch.sh --devices '[6,8)'
  ranks_on 6,7 '2 3'
  clean
  ASCEND_RT_VISIBLE_DEVICES=4,5 refused 78 \
    'launch.sh: devices 0,1 cannot be used: ASCEND_RT_VISIBLE_DEVICES=4,5 shows the ranks only devices 4,5; choose *' \
    on_npus launch.sh --devices '[0,2)'
}

# bats test_tags=slow
@test "scripts with devices of their own take as many visible ones, or say that there are too few" {
  ASCEND_RT_VISIBLE_DEVICES=0,1,2,3 ends 0 '*for devices 0-3, in place of the script'\''s devices 4-7*' on_npus ascend4p.sh config.yaml
  ranks_on 0,1,2,3 '0 1 2 3'
  clean
  ASCEND_RT_VISIBLE_DEVICES=4,5,6,7 refused 78 \
    '*8 ranks need as many devices, but *=4,5,6,7 shows only devices 4-7; use scripts/ascend4p.sh, or: unset *' \
    on_npus ascend8p.sh config.yaml
}

# bats test_tags=slow
@test "a list that CANN would not read whole is refused" {
  local text
  for text in '4,,5' a 4-7 4,4 -1 '' 9 '1, 2'; do
    ASCEND_RT_VISIBLE_DEVICES=$text refused_later 78 "launch.sh: ASCEND_RT_VISIBLE_DEVICES=$text: *CANN reads *" on_npus launch.sh
  done
  all_refused
}

# bats test_tags=slow
@test "engines: the ranks of mpirun count among the visible devices, too" {
  need mpirun
  ASCEND_RT_VISIBLE_DEVICES=4,5 on_npus run_mpirun.sh config.yaml
  ranks_on 4,5 '0 1'
  clean
  ASCEND_RT_VISIBLE_DEVICES=4,5,6,7 on_npus run_mpirun.sh --devices 7,5 config.yaml
  ranks_on 7,5 '3 1'
  clean
}

# bats test_tags=slow
@test "engines: msrun, also in a container" {
  need_mindspore
  PYTHONPATH=$FIXTURES/quick_msrun # the real msrun; its trainers are stubs
  ASCEND_RT_VISIBLE_DEVICES=2,6 on_npus run_msrun.sh config.yaml
  ranks_on 2,6 '0 1'
  clean
  device_nodes 4 5 6 7
  "${IN_CONTAINER[@]}" bash "$SCRIPTS/run_msrun.sh" --train_script "$FIXTURES/stub_trainer.py" config.yaml
  ranks_on 4,5,6,7 '0 1 2 3'
}

# bats test_tags=slow
@test "GPUs: as many ranks as CUDA_VISIBLE_DEVICES names, locked by their own numbers" {
  CUDA_VISIBLE_DEVICES=3,1 stubbed launch.sh --device_target GPU --no_check config.yaml
  CUDA_VISIBLE_DEVICES=3,1 "${STUBBED[@]}"
  ranks_on 3,1 '0 1'
  clean
  CUDA_VISIBLE_DEVICES=-1 refused 78 '*CUDA_VISIBLE_DEVICES=-1 hides all GPUs*' "${STUBBED[@]}"
}

# bats test_tags=slow
@test "two jobs with other visible devices run side by side, and a third that shares one is refused" {
  stubbed launch.sh --device_target Ascend
  export STUB_DO='0: wait; 1: wait'
  local -a launchers=()
  local pair
  set -m
  for pair in 0,1 6,7; do
    ASCEND_RT_VISIBLE_DEVICES=$pair "${STUBBED[@]}" >/dev/null 2>"$BATS_TEST_TMPDIR/stderr_$pair" 3>&- &
    launchers+=($!)
    eventually ranks_up 0 1
    clean
  done
  set +m
  unset STUB_DO
  ASCEND_RT_VISIBLE_DEVICES=5,6 ends 78 '*device 6 in use by *' "${STUBBED[@]}"
  ASCEND_RT_VISIBLE_DEVICES=4,5 ends 0 '*2 ranks on devices 4,5*' "${STUBBED[@]}"
  kill -TERM "${launchers[@]}"
  for LAUNCHER in "${launchers[@]}"; do eventually gone "$LAUNCHER"; done
  eventually nobody_left
}

teardown() {
  [[ -z ${SLURM-} ]] || bash "$PROJECT/tests/fixtures/slurm.sh" down "$SLURM"
  end_left_over
}

# on_node WORD...: two ranks on GPUs of node n0, in a batch job that gets the words
on_node() {
  sbatch --quiet --wait --output=sbatch.out -N 1 -w n0 --ntasks-per-node=2 "$@" "$SCRIPTS/run_slurm.sh" \
    --device_target GPU --no_check --train_script "$FIXTURES/stub_trainer.py" config.yaml
}

# bats test_tags=thorough
@test "Slurm: ranks count among the GPUs of their node, or have one each; two jobs share a node" {
  [[ -c /dev/tty3 ]] || skip "needs /dev/tty0 to /dev/tty3"
  SLURM=$BATS_TEST_TMPDIR/slurm
  GPUS=yes run bash "$PROJECT/tests/fixtures/slurm.sh" up "$SLURM"
  [[ $status -ne 77 ]] || skip "$output"
  export SLURM_CONF=$SLURM/slurm.conf
  salloc --quiet -N 1 -w n0 --gres=gpu:2 sleep 60 3>&- & # takes GPUs 0 and 1
  local -r other=$!
  eventually squeue_has_a_job
  on_node --gres=gpu:2 || fail "$(cat sbatch.out)"
  ranks_on 2,3 '0 1'
  [[ "$(places CUDA_VISIBLE_DEVICES)" = $'2,3\n2,3' ]]
  clean
  on_node --gpus-per-task=1 || fail "$(cat sbatch.out)"
  [[ "$(places CUDA_VISIBLE_DEVICES DEVICE_ID)" = $'2 0\n3 0' ]] || fail "$(places CUDA_VISIBLE_DEVICES DEVICE_ID)"
  kill "$other"
}

# squeue_has_a_job: Slurm has given a job its node
squeue_has_a_job() {
  [[ "$(squeue --noheader --format=%T)" == RUNNING ]]
}

# bats test_tags=slow
@test "a container with some devices of its host: the table has the host's numbers, DEVICE_ID those of CANN" {
  device_nodes 4 5
  ends 0 '*CANN counts the devices in /dev: DEVICE_ID 0,1 for devices 4,5*' "${IN_CONTAINER[@]}" \
    bash "$SCRIPTS/launch.sh" --train_script "$FIXTURES/stub_trainer.py"
  ranks_on 4,5 '0 1'
  [[ "$(of_table)" = '4 5' ]]
}

# bats test_tags=slow
@test "a container: other scripts, and the variable, which has places there" {
  device_nodes 4 5 6 7
  local -r trainer=(--train_script "$FIXTURES/stub_trainer.py")
  "${IN_CONTAINER[@]}" bash "$SCRIPTS/ascend2p.sh" "${trainer[@]}" config.yaml
  ranks_on 4,5 '0 1'
  clean
  ASCEND_RT_VISIBLE_DEVICES=2,3 "${IN_CONTAINER[@]}" bash "$SCRIPTS/launch.sh" "${trainer[@]}"
  ranks_on 6,7 '0 1'
  clean
  ASCEND_RT_VISIBLE_DEVICES=4,5 refused 78 '*numbers the 4 devices here from 0 to 3; *=0,1, or: unset *' \
    "${IN_CONTAINER[@]}" bash "$SCRIPTS/launch.sh" "${trainer[@]}"
}

# bats test_tags=slow
@test "two containers of one host, whose ranks have the same DEVICE_ID, run side by side" {
  local -r command=(bash "$SCRIPTS/launch.sh" --train_script "$FIXTURES/stub_trainer.py")
  device_nodes 4 5
  STUB_DO='0: wait; 1: wait' behind "${IN_CONTAINER[@]}" "${command[@]}"
  eventually ranks_up 0 1
  ranks_on 4,5 '0 1'
  clean
  device_nodes 5 6
  ends 78 '*device 5 in use by *' "${IN_CONTAINER[@]}" "${command[@]}"
  device_nodes 6 7
  ends 0 '*2 ranks on devices 6,7*' "${IN_CONTAINER[@]}" "${command[@]}"
  ranks_on 6,7 '0 1'
  end_by TERM 143
}

# bats test_tags=slow
@test "hccl_tools.py and doctor.sh have the same picture" {
  ASCEND_RT_VISIBLE_DEVICES=4,5 ends 0 '*2 ranks on devices 4,5, addresses from hccn_tool*' \
    python "$PROJECT/hccl_tools/hccl_tools.py" --stdout
  ASCEND_RT_VISIBLE_DEVICES=4,5 ends 2 '*devices 0,1 cannot be used: *' \
    python "$PROJECT/hccl_tools/hccl_tools.py" --stdout --device_num '[0,2)'
  ASCEND_RT_VISIBLE_DEVICES=4,,5 ends 2 '*a number is missing between its commas*' \
    python "$PROJECT/hccl_tools/hccl_tools.py" --stdout
  ASCEND_RT_VISIBLE_DEVICES=4,5 run bash "$SCRIPTS/doctor.sh"
  [[ $output == *'visible devices'*'ASCEND_RT_VISIBLE_DEVICES=4,5: DEVICE_ID 0,1 for devices 4,5'* ]] || fail "$output"
}

# bats test_tags=slow
@test "what the container runtime reads limits no rank, and that is said" {
  ASCEND_VISIBLE_DEVICES=4,5 ends 0 '*note: ASCEND_VISIBLE_DEVICES=4,5 does not limit the ranks*8 ranks on devices 0-7*' on_npus launch.sh
}

# bats test_tags=slow
@test "the driver's tools are found in their own folder" {
  need_namespaces "to install the driver" -m
  # shellcheck disable=SC2016 # for the inner shell
  local -r installed=(unshare -m bash -c '
    mkdir "$0" && mount --rbind /usr/local "$0" && mount -t tmpfs none /usr/local || exit 99
    for file in "$0"/*; do ln -s "$file" /usr/local; done
    rm -f /usr/local/Ascend && mkdir -p /usr/local/Ascend/driver/tools || exit 99
    cp "$1"/* /usr/local/Ascend/driver/tools
    shift
    exec "$@"' "$BATS_TEST_TMPDIR/local" "$FIXTURES/bin")
  PATH=$PLAIN_PATH
  ends 0 '*addresses from hccn_tool in /usr/local/Ascend/driver/tools, which is not on PATH*' "${installed[@]}" \
    python "$PROJECT/hccl_tools/hccl_tools.py" --stdout --device_num '[0,2)'
  rm -rf "$BATS_TEST_TMPDIR/local"
  ends 0 '*built for devices 0-7, addresses from hccn_tool in /usr/local/Ascend/driver/tools, which is not on PATH*' \
    "${installed[@]}" bash "$SCRIPTS/launch.sh" --train_script "$FIXTURES/stub_trainer.py"
  rm -rf "$BATS_TEST_TMPDIR/local"
  cp logs/latest/hccl_*.json table.json
  run --separate-stderr "${installed[@]}" bash "$SCRIPTS/check_network.sh" table.json
  [[ $stderr == *'hccn_tool in /usr/local/Ascend/driver/tools, which is not on PATH'* && $output == *"0 with a problem"* ]] || fail "$stderr $output"
  rm -rf "$BATS_TEST_TMPDIR/local"
  run "${installed[@]}" bash "$SCRIPTS/doctor.sh"
  [[ $output == *'hccn_tool in /usr/local/Ascend/driver/tools, which is not on PATH'* ]] || fail "$output"
  [[ $output == *'npu-smi in /usr/local/Ascend/driver/tools, which is not on PATH'* ]] || fail "$output"
}

# bats test_tags=slow
@test "run_cluster.sh on CPU needs no tool of the driver" {
  need mpirun
  PATH=$PLAIN_PATH
  printf '127.0.0.1 slots=2\n' >hosts
  mkdir data
  launch run_cluster.sh --hostfile hosts --config config.yaml data
  [[ "$(device_ids)" = '0 1 ' && "$(recorded rank_0 '"RANK_TABLE_FILE" in r["env"]')" = False ]]
}

# bats test_tags=slow
@test "devices that are left out: others take their places, and the rank table has those" {
  ends 0 '*--exclude 0: the ranks run on devices 1,2*' on_npus ascend2p.sh --exclude 0 config.yaml
  [[ "$(device_ids)" = '1 2 ' && "$(of_table)" = '1 2' ]]
  clean
  ends 0 '*' on_npus launch.sh --exclude 0-2,5 config.yaml
  [[ "$(device_ids)" = '3 4 6 7 ' && "$(of_table)" = '3 4 6 7' ]]
  clean
  refused 78 '*8 ranks need as many devices, but --exclude 5 leaves 7: devices 0-4,6,7; *-n 7*' on_npus ascend8p.sh --exclude 5 config.yaml
}
