#!/usr/bin/env bats
# Under every script and engine each rank gets the right environment, folder and arguments, and there are as many ranks as
# there should be. tests/mutations shows that a change to a script, or to a variable, fails here.
#
# The ranks run a stub that stands where a project of the user's has its trainer, tools/train.py. It gets the default config
# of a script. fixtures/each_rank.py says what `each_rank` compares.

load ../helper
load ../lab/lab
load ../hosts

setup_file() {
  NAMES=$(python "$FIXTURES/each_rank.py" names)
  export NAMES
}

setup() {
  pods_setup
  # No variable that a rank gets may come from the person who runs the tests.
  # shellcheck disable=SC2086 # a list of names
  unset STUB_SCHEDULER_EXIT $NAMES
  HCCN=(--hccn_conf hccn.conf)
  mkdir data tools
  cp "$FIXTURES/stub_trainer.py" tools/train.py
  DATA=DATA_PATH=$WORLD/data
  RESNET50=$PROJECT/configs/cls/resnet/resnet50_cifar10
  LENET5=$PROJECT/configs/mnist/lenet5_mnist.yaml
  export STUB_DO='0: await scheduler' # where there is one: see `ends_well`
  ON_CPU=(-o system.device_target=CPU)
}

teardown() {
  [[ -z ${SLURM_CONF-} ]] || bash "$FIXTURES/slurm.sh" down "${SLURM_CONF%/*}"
  lab_down
  end_left_over
}

# runs COMMAND...: it ends with 0, and soon
runs() {
  timeout -k 5 60 "$@" >stdout 2>stderr || fail "exit $?" "$(<stderr)"
}

# npus SCRIPT WORD...: the script for NPUs that are not looked for, with addresses from hccn.conf; no scheduler runs
npus() {
  STUB_DO='' runs bash "$SCRIPTS/$1" --no_check "${HCCN[@]}" "${@:2}"
}

# cpus SCRIPT WORD...: the script on CPU, where a scheduler runs
cpus() {
  runs bash "$SCRIPTS/$1" --device_target CPU "${HCCN[@]}" "${@:2}"
}

# gpus SCRIPT WORD...: the script on a machine with two simulated GPUs
gpus() {
  mkdir bin
  printf '#!/bin/sh\necho "GPU 0: A"\necho "GPU 1: B"\n' >bin/nvidia-smi
  chmod +x bin/nvidia-smi
  export PATH=$WORLD/bin:$PATH
  runs bash "$SCRIPTS/$1" "${HCCN[@]}" "${@:2}"
}

# each_rank SIZES DEVICES WORD... [-- TRAINER ARGUMENT...]: see fixtures/each_rank.py.  While another program of this
# machine has a port of HCCL, a launch moves HCCL to others, and says so.
each_rank() {
  local -a moved=()
  [[ ! $(cat stderr*) =~ 'note: HCCL gets the ports '([0-9]+)-[0-9]+' in this job' ]] || moved=("HCCL_IF_BASE_PORT=${BASH_REMATCH[1]}")
  python -S -E "$FIXTURES/each_rank.py" "${@:1:2}" "${moved[@]+"${moved[@]}"}" "${@:3}" || fail "$(cat stderr*)"
}

# ---- the devices of this machine -------------------------------------------------------------------

# ascend RANKS DEVICES [NAME=VALUE...]: ascendNp.sh, which has the tutorial's devices, on NPUs and on CPU
ascend() {
  local -r table="RANK_TABLE_FILE={run}/hccl_$1p_${2// /}_127.0.0.1.json"
  npus "ascend$1p.sh" config.yaml
  each_rank "$1" "$2" Ascend "$table" "${@:3}" -- --config config.yaml
  rm "$STUB_OUT"/*
  cpus "ascend$1p.sh" config.yaml
  each_rank "$1" "$2" CPU cluster "$table" "${@:3}" -- --config config.yaml
}

# bats test_tags=slow
@test "ascend1p.sh: device 0" { ascend 1 0; }
# bats test_tags=slow
@test "ascend2p.sh: devices 0 and 1" { ascend 2 '0 1'; }
# bats test_tags=slow
@test "ascend4p.sh: devices 4 to 7, and the tutorial's DEVICE_NUM" { ascend 4 '4 5 6 7' DEVICE_NUM=8; }
# bats test_tags=slow
@test "ascend8p.sh: devices 0 to 7" { ascend 8 '0 1 2 3 4 5 6 7'; }

# bats test_tags=slow
@test "ascend1p.sh: one rank that is not distributed has no cluster and no rank table" {
  printf 'system:\n  distribute: False\n' >config.yaml
  npus ascend1p.sh config.yaml
  each_rank 1 0 Ascend alone -- --config config.yaml
}

# bats test_tags=slow
@test "launch.sh: as many ranks as -n says, on the devices that the machine has" {
  local -r table='RANK_TABLE_FILE={run}/hccl_3p_012_127.0.0.1.json' path=$PATH
  export PATH=$FIXTURES/bin:$PATH HCCN_SIM=$WORLD # a simulated machine with NPUs
  STUB_DO='' runs bash "$SCRIPTS/launch.sh" -n 3 config.yaml
  each_rank 3 '0 1 2' Ascend "$table" -- --config config.yaml
  rm "$STUB_OUT"/*
  PATH=$path
  cpus launch.sh -n 3 config.yaml
  each_rank 3 '0 1 2' CPU cluster "$table" -- --config config.yaml
  rm "$STUB_OUT"/*
  gpus launch.sh -n 2 config.yaml
  each_rank 2 '0 1' GPU cluster -- --config config.yaml
}

# resnet50 SCRIPT CONFIG: RANK_SIZE ranks of the script, with DATA_PATH, on NPUs and on CPU
resnet50() {
  local -r table='RANK_TABLE_FILE={run}/hccl_2p_01_127.0.0.1.json'
  npus "$1" data 2
  each_rank 2 '0 1' Ascend "$table" "$DATA" -- --config "$2"
  rm "$STUB_OUT"/*
  cpus "$1" data 2
  each_rank 2 '0 1' CPU cluster "$table" "$DATA" -- --config "$2" "${ON_CPU[@]}"
}

# bats test_tags=slow
@test "run.sh: RANK_SIZE ranks, with DATA_PATH" { resnet50 run.sh "$RESNET50.yaml"; }
# bats test_tags=slow
@test "run_dataset_slice.sh: RANK_SIZE ranks, with DATA_PATH" { resnet50 run_dataset_slice.sh "${RESNET50}_slice.yaml"; }

# bats test_tags=slow
@test "run_pipeline.sh: 8 ranks on devices 0 to 7, with DATA_PATH" {
  npus run_pipeline.sh data Ascend
  each_rank 8 '0 1 2 3 4 5 6 7' Ascend 'RANK_TABLE_FILE={run}/hccl_8p_01234567_127.0.0.1.json' "$DATA" -- \
    --config "${RESNET50}_pipeline.yaml"
}

# bats test_tags=slow
@test "run_cpu.sh: one rank, which joins no job, on device 0" {
  STUB_DO='' runs bash "$SCRIPTS/run_cpu.sh" config.yaml
  each_rank 1 0 CPU alone -- --config config.yaml -o system.distribute=False
}

# ---- Open MPI --------------------------------------------------------------------------------------

# mpi SIZES DEVICES [NAME=VALUE...] -- SCRIPT WORD...: a script that mpirun serves, on NPUs and on CPU; the trainer gets
# CONFIG. In the lab the script is typed on the first host.
mpi() {
  local -a expected=()
  while [[ $1 != -- ]]; do
    expected+=("$1")
    shift
  done
  local -a there=(bash "$SCRIPTS/$2")
  if [[ -n ${LAB-} ]]; then
    there=("$LAB_SH" run 0 "${there[@]}")
    expected+=(address=10.77.0.1 host=node0)
  fi
  STUB_DO='' runs "${there[@]}" --no_check "${@:3}"
  each_rank "${expected[@]}" Ascend mpirun -- --config "$CONFIG"
  rm "$STUB_OUT"/*
  runs "${there[@]}" --device_target CPU "${@:3}"
  each_rank "${expected[@]}" CPU mpirun cluster -- --config "$CONFIG" "${ON_CPU[@]}"
}

# two_hosts: the lab's
two_hosts() {
  need mpirun ssh
  lab_up 2
}

# bats test_tags=thorough
@test "run_mpirun.sh: -n ranks; MindSpore finds the rank's device where it looks for it" {
  need mpirun
  CONFIG=config.yaml ON_CPU=()
  mpi 2 '4 5' MY_OWN=1 -- run_mpirun.sh -n 2 --devices 4,5 -x MY_OWN=1 config.yaml
}

# bats test_tags=thorough
@test "run_mpirun_1.sh: the slots of the hosts in the command" {
  need mpirun
  CONFIG=$LENET5
  mpi 3 '0 1 2' MY_OWN=1 -- run_mpirun_1.sh -x MY_OWN=1 localhost:3
}

# bats test_tags=thorough
@test "run_mpirun_2.sh: the slots of the hosts in the file" {
  need mpirun
  CONFIG=$LENET5
  printf 'localhost slots=3\n' >hosts
  mpi 3 '0 1 2' MY_OWN=1 -- run_mpirun_2.sh -x MY_OWN=1 hosts
}

# bats test_tags=thorough
@test "run_gpu.sh: -n ranks on GPUs without a scheduler; on CPU with one; both with DATA_PATH" {
  need mpirun
  HCCN=()
  STUB_DO='' gpus run_gpu.sh -n 2 -x MY_OWN=1 data
  each_rank 2 '0 1' GPU mpirun "$DATA" MY_OWN=1 -- --config "$RESNET50.yaml" -o system.device_target=GPU
  rm "$STUB_OUT"/*
  cpus run_gpu.sh -n 2 data
  each_rank 2 '0 1' CPU mpirun cluster "$DATA" -- --config "$RESNET50.yaml" "${ON_CPU[@]}"
}

# bats test_tags=thorough
@test "run_mpirun_1.sh on two hosts: a rank knows its host, and the others on it" {
  two_hosts
  CONFIG=$LENET5
  mpi '2 1' '0 1 0' -- run_mpirun_1.sh node0:2,node1:1
}

# bats test_tags=thorough
@test "run_mpirun_2.sh on two hosts: a rank knows its host, and the others on it" {
  two_hosts
  CONFIG=$LENET5
  printf 'node0 slots=1\nnode1 slots=2\n' >hosts
  mpi '1 2' '0 0 1' -- run_mpirun_2.sh hosts
}

# ---- the servers of a rank table -------------------------------------------------------------------

# bats test_tags=thorough
@test "run_cluster.sh typed on each server: its own ranks; the first starts the scheduler" {
  table >"$TABLE"
  sed 's/, "container_ip": "[^"]*"//g; s/192.168.1.1/127.0.0.2/g; s/192.168.1.2/127.0.0.3/g' "$TABLE" >hccl.json
  local -a servers=(2\ 2 '0 1 0 1' address=127.0.0.2 "$DATA" "RANK_TABLE_FILE=$WORLD/hccl.json" run=0/latest run=1/latest)
  HCCN=()
  npus run_cluster.sh --log_dir 0 data hccl.json 4 0
  npus run_cluster.sh --log_dir 1 data hccl.json 4 2
  each_rank "${servers[@]}" Ascend -- --config "$RESNET50.yaml"
  rm "$STUB_OUT"/*
  export STUB_SCHEDULER_EXIT=0 # the real one waits for the ranks of both
  cpus run_cluster.sh --log_dir 0 data hccl.json 4 0
  cpus run_cluster.sh --log_dir 1 data hccl.json 4 2
  each_rank "${servers[@]}" CPU cluster -- --config "$RESNET50.yaml" "${ON_CPU[@]}"
}

# bats test_tags=thorough
@test "run_cluster.sh --hostfile: the ranks of all hosts, with a rank table that it builds" {
  two_hosts
  CONFIG=$RESNET50.yaml
  printf 'node0 slots=2\nnode1 slots=2\n' >hosts
  mpi '2 2' '0 1 0 1' "$DATA" 'RANK_TABLE_FILE={run}/hccl_2s_4p.json' -- run_cluster.sh --hostfile hosts data
}

# ---- MindSpore's own launcher ----------------------------------------------------------------------

# msrun LOGS SECONDS SCRIPT WORD...: the script for three NPUs and on CPU, with the real msrun; its run folder is in LOGS, and
# the ranks have so many seconds to come
msrun() {
  need_mindspore
  export PYTHONPATH=$FIXTURES/quick_msrun # without the rest of MindSpore
  HCCN=()
  local -ra expected=("run=$1/latest" "MS_TOPO_TIMEOUT=$2" msrun cluster)
  runs bash "$SCRIPTS/$3" --no_check "${@:4}"
  each_rank 3 '0 1 2' Ascend "${expected[@]}" -- --config config.yaml
  rm "$STUB_OUT"/*
  rm -r "$1"
  cpus "${@:3}"
  each_rank 3 '0 1 2' CPU "${expected[@]}" -- --config config.yaml
}

# bats test_tags=thorough
@test "run_msrun.sh: --worker_num ranks with a scheduler" { msrun logs 600 run_msrun.sh --worker_num 3 config.yaml; }
# bats test_tags=thorough
@test "msrun_launcher.sh: WORKER_NUM ranks of a quoted command, with a scheduler" {
  msrun output/msrun_log 7200 msrun_launcher.sh 'tools/train.py --config config.yaml' 3
}

# ---- Slurm -----------------------------------------------------------------------------------------

# bats test_tags=thorough
@test "run_slurm.sh: the ranks of all nodes with a scheduler" {
  local why
  export SLURM_CONF=$BATS_TEST_TMPDIR/slurm/slurm.conf
  why=$(env -u TEST_MARK bash "$FIXTURES/slurm.sh" up "${SLURM_CONF%/*}" 2>&1) || skip "${why:-no Slurm here}"
  local -r job=(salloc --quiet -N 2 --ntasks-per-node=2 bash "$SCRIPTS/run_slurm.sh")
  runs "${job[@]}" --no_check config.yaml
  each_rank '2 2' '0 1 0 1' Ascend srun cluster -- --config config.yaml
  rm "$STUB_OUT"/*
  runs "${job[@]}" --device_target CPU config.yaml
  each_rank '2 2' '0 1 0 1' CPU srun cluster -- --config config.yaml
}

# ---- Kubernetes ------------------------------------------------------------------------------------

# two_pods NAME=VALUE... -- WORD...: run_pod.sh in two pods with these variables and words, on NPUs and on CPU. each_rank gets
# EXPECTED, too.
two_pods() {
  local -a variables=()
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  local -ra expected=("${EXPECTED[@]}" pod run=logs0/latest run=logs1/latest address=127.0.0.2)
  unset STUB_DO
  export STUB_SCHEDULER_EXIT=0 # the real one waits for the ranks of both
  both_pods --no_check "${@:2}"
  each_rank '2 2' '0 1 0 1' Ascend "${expected[@]}" -- --config config.yaml
  rm "$STUB_OUT"/*
  both_pods --device_target CPU "${@:2}"
  each_rank '2 2' '0 1 0 1' CPU cluster "${expected[@]}" -- --config config.yaml
  rm "$STUB_OUT"/*
}

# both_pods WORD...: with the variables that two_pods has; each pod locks devices of its own
both_pods() {
  local number
  for number in 0 1; do
    env "POD_IP=127.0.0.$((number + 2))" "XDL_IP=192.168.1.$((number + 1))" "JOB_COMPLETION_INDEX=$number" \
      "LAUNCH_LOCKS=$BATS_TEST_TMPDIR/locks$number" "${variables[@]}" \
      timeout 60 bash "$SCRIPTS/run_pod.sh" --log_dir "logs$number" "$@" config.yaml >"stdout$number" 2>"stderr$number" 3>&- &
    PIDS[number]=$!
  done
  pod_ended 0 0 '*'
  pod_ended 1 0 '*'
}

# bats test_tags=thorough
@test "run_pod.sh with an operator's rank table: the ranks of each pod" {
  EXPECTED=('RANK_TABLE_FILE={run}/hccl.json')
  table >"$TABLE"
  two_pods "RANK_TABLE_FILE=$TABLE" --
}

# bats test_tags=thorough
@test "run_pod.sh without a rank table: the ranks of each pod, with a scheduler in the first" {
  local -r port=$(free_port)
  EXPECTED=(cluster "MS_SCHED_PORT=$port")
  two_pods MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 MS_SCHED_HOST=127.0.0.2 "MS_SCHED_PORT=$port" --
  two_pods -- --worker_num 4 --local_worker_num 2 --master_addr 127.0.0.2 --master_port "$port"
}

# ---- what options and shells add -------------------------------------------------------------------

# variables of an earlier job
EARLIER=(RANK_ID=77 RANK_SIZE=77 DEVICE_ID=77 MS_WORKER_NUM=77 MS_SCHED_HOST=10.0.0.77 MS_SCHED_PORT=7777 MS_ROLE=MS_PSERVER MS_NODE_ID=77 LOG_DIR=/77
  MINDSPORE_HCCL_CONFIG_PATH=/77.json MS_SERVER_NUM=77)

# bats test_tags=slow
@test "ascend2p.sh: variables of an earlier job reach no rank" {
  STUB_DO='' runs env "${EARLIER[@]}" bash "$SCRIPTS/ascend2p.sh" --no_check "${HCCN[@]}" config.yaml
  each_rank 2 '0 1' Ascend 'RANK_TABLE_FILE={run}/hccl_2p_01_127.0.0.1.json' -- --config config.yaml
}

# bats test_tags=thorough
@test "run_mpirun.sh: variables of an earlier job reach no rank" {
  need mpirun
  STUB_DO='' runs env "${EARLIER[@]}" RANK_TABLE_FILE=/77.json bash "$SCRIPTS/run_mpirun.sh" --no_check -n 2 config.yaml
  each_rank 2 '0 1' Ascend mpirun -- --config config.yaml
}

# bats test_tags=thorough
@test "run_mpirun.sh: what --no_sink and --straggler say" {
  need mpirun
  CONFIG=config.yaml ON_CPU=()
  mpi 2 '0 1' GRAPH_OP_RUN=1 HCCL_WHITELIST_DISABLE=1 LAUNCH_STRAGGLER=1.5 -- run_mpirun.sh -n 2 --no_sink --straggler 1.5 config.yaml
}

# bats test_tags=thorough
@test "ascend1p.sh: --bind_core tells the rank its cores" {
  local -r core=$(python -c 'import os; print(max(os.sched_getaffinity(0)))')
  ((core > 0)) || skip "needs 2 processors"
  taskset -cp "$core" "$BASHPID" >/dev/null
  printf 'system:\n  distribute: False\n' >config.yaml
  STUB_DO='' cpus ascend1p.sh --bind_core config.yaml
  each_rank 1 0 CPU alone "MSRUN_CPU_LIST=[$core]" -- --config config.yaml
}

# bats test_tags=thorough
@test "ascend2p.sh: RESUME after a restart" {
  STUB_DO='0: first exit 3' runs bash "$SCRIPTS/ascend2p.sh" --no_check "${HCCN[@]}" --max_restarts 1 config.yaml
  each_rank 2 '0 1' Ascend RESUME=1 'RANK_TABLE_FILE={run}/hccl_2p_01_127.0.0.1.json' \
    'ASCEND_PROCESS_LOG_PATH={run}/restart_1/plog/rank_{rank}' -- --config config.yaml
}

# bats test_tags=thorough
@test "run_mpirun_1.sh: RESUME_RANK_SIZES after the loss of a host" {
  two_hosts
  export STUB_DO='0: first wait; 1: first wait; 2: first wait'
  on 0 bash "$SCRIPTS/run_mpirun_1.sh" --no_check --max_restarts 1 --grace 1 node0:2,node1:1 >stdout 2>stderr 3>&- &
  eventually ranks_up 0 1 2
  rm "$STUB_OUT"/*
  "$LAB_SH" off 1
  wait "$!" || fail "$(<stderr)"
  each_rank 2 '0 1' Ascend mpirun host=node0 RESUME=1 RESUME_RANK_SIZES=3 \
    'ASCEND_PROCESS_LOG_PATH={run}/restart_1/plog/rank_{rank}' -- --config "$LENET5"
}
