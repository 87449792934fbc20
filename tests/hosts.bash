# shellcheck shell=bash
# Jobs of several hosts in the tests: run_cluster.sh, pods, and a real Slurm.

# --- run_cluster.sh: started here, on a host of the lab, or for the lab's two hosts

# cluster WORD...: runs run_cluster.sh with the stub trainer on CPU
cluster() {
  launch run_cluster.sh --config config.yaml "$@"
}

# cluster_on HOST WORD...: the same on a host of the lab
cluster_on() {
  stubbed run_cluster.sh --device_target CPU --config config.yaml "${@:2}"
  on "$1" "${STUBBED[@]}"
}

# hosts SLOTS: writes a hostfile of the lab's two hosts
hosts() {
  printf '10.77.0.%s slots=%d\n' 1 "$1" 2 "$1" >hosts
}

# cluster_refused STATUS PATTERN WORD...: checks that the command is refused, with one line, and does nothing
cluster_refused() {
  refused "$1" "$2" cluster "${@:3}"
}

# lab_of_two SLOTS: needs mpirun; starts the lab, and writes a hostfile
lab_of_two() {
  need mpirun
  lab_up 2
  hosts "$1"
}

# Prints a port for a scheduler: nothing listens at it and at the next one, and the kernel gives neither to others.
free_port() {
  python -S -E - <<'PY'
import contextlib, random, socket
while True:
    port = random.randrange(20000, 32000)
    with contextlib.suppress(OSError), socket.socket() as one, socket.socket() as other:
        one.bind(("", port))
        other.bind(("", port + 1))
        print(port)
        break
PY
}

# --- the pods of a job: each is a launcher with the environment that an operator gives it

# pods_setup: prepares a world without the variables of a pod.
pods_setup() {
  local name
  setup_world
  for name in MS_LOCAL_WORKER MS_NODE_RANK MS_SERVER_NUM NPU_POD ASCEND_VISIBLE_DEVICES POD_IP XDL_IP HOST_IP MA_CURRENT_IP \
    MA_NUM_GPUS MA_NUM_HOSTS MINDX_TASK_ID JOB_COMPLETION_INDEX JOB_NAME VK_TASK_INDEX VC_TASK_INDEX RANK_TABLE_FILE_V_1_0 \
    MS_TOPO_TIMEOUT ${!VC_@}; do
    unset "$name"
  done
  HCCN=() # addresses are in the operator's table
  STUB_SCHEDULER_EXIT=0
  MOUNT=$WORLD/config
  TABLE=$MOUNT/hccl.json
  PIDS=()
  export STUB_SCHEDULER_EXIT
  mkdir "$MOUNT"
}

# table [ADDRESS...]: prints an operator's table for pods with these addresses (127.0.0.2 127.0.0.3), two devices each.
# Each table is different, because ports follow from it.
table() {
  python - "${@:-127.0.0.2 127.0.0.3}" <<'PY'
import json, random, sys
servers = [
    {"server_id": f"192.168.1.{n + 1}", "host_ip": f"192.168.1.{n + 1}", "container_ip": address, "hardware_type": "800I-A2-32G",
     "device": [{"device_id": str(d), "device_ip": f"10.78.{n}.{d + 1}", "rank_id": str(2 * n + d)} for d in range(2)]}
    for n, address in enumerate(" ".join(sys.argv[1:]).split())
]
table = {"version": "1.0", "server_count": str(len(servers)), "server_list": servers, "status": "completed",
         "job": str(random.random())}
print(json.dumps(table))
PY
}

# table_950 [FIRST_DEVICE...]: prints ascend-operator's table for 950 nodes, version 2.0. Each pod has two ranks, on
# devices from FIRST_DEVICE on (0 0: two nodes). The ranks have networks, one without an address on the third layer. The
# table does not name hosts.
table_950() {
  python - "${@:-0 0}" <<'PY'
import json, random, sys

def level(layer, name, addresses, kind="CLOS"):
    listed = [{"addr_type": "EID" if len(each) == 32 else "IPV4", "addr": each, "ports": [f"{layer}/{n}"], "plane_id": f"plane_{n}"}
              for n, each in enumerate(addresses)]
    return {"net_layer": layer, "net_instance_id": name, "net_type": kind, "net_attr": "", "rank_addr_list": listed}

ranks = []
for pod, first in enumerate(map(int, " ".join(sys.argv[1:]).split())):
    for device in (first, first + 1):
        eids = [f"{pod:08x}{device:08x}{n:016x}" for n in range(9)]
        levels = [level(0, f"sp1_srv{pod}", eids[:7], "TOPO_FILE_DESC"), level(1, "superpod_1", eids[7:]), level(3, "cluster", [])]
        ranks.append({"rank_id": len(ranks), "local_id": device, "device_id": device, "level_list": levels})
random.shuffle(ranks)
print(json.dumps({"status": "completed", "version": "2.0", "rank_count": len(ranks), "rank_list": ranks, "job": str(random.random())}))
PY
}

# pod NUMBER [NAME=VALUE...] -- WORD...: starts the launcher of pod NUMBER (127.0.0.2 is pod 0) in the background, on CPU.
# It has its own logs and messages, these variables, and those that an operator sets in addition to a rank table.
pod() {
  bare_pod "$1" "XDL_IP=192.168.1.$(($1 + 1))" "RANK_TABLE_FILE=$TABLE" MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 "MS_NODE_RANK=$1" "${@:2}"
}

# bare_pod NUMBER [NAME=VALUE...] -- WORD...: the same with only its address and these variables
bare_pod() {
  local -r number=$1
  local -a variables=("POD_IP=127.0.0.$((number + 2))")
  shift
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  stubbed run_pod.sh --device_target "${TARGET:-CPU}" --log_dir "logs$number" "$@" config.yaml
  : >"stdout$number"
  : >"stderr$number"
  set -m
  env "${variables[@]}" "${STUBBED[@]}" >"stdout$number" 2>"stderr$number" 3>&- &
  set +m
  PIDS[number]=$!
}

# pod_ended NUMBER STATUS PATTERN: waits for the end of its launcher, and checks its status and messages
pod_ended() {
  eventually gone "${PIDS[$1]}"
  status=0
  wait "${PIDS[$1]}" || status=$?
  stderr=$(<"stderr$1")
  output=$(<"stdout$1")
  was "$2" "$3"
}

# says NUMBER TEXT: whether its messages contain the text
says() {
  grep -qF -- "$2" "stderr$1"
}

# one_pod STATUS PATTERN [NAME=VALUE...] -- WORD...: starts pod 1, and checks that it ends so by itself
one_pod() {
  pod 1 "${@:3}"
  pod_ended 1 "$1" "$2"
}

# slurm_up [NODES]: starts Slurm, for setup_file. If it cannot, WHY_NOT has the reason.
slurm_up() {
  SLURM=$BATS_FILE_TMPDIR/slurm
  if ! WHY_NOT=$(bash "$BATS_TEST_DIRNAME/../fixtures/slurm.sh" up "$SLURM" "$@" 2>&1); then
    WHY_NOT=${WHY_NOT:-"no Slurm here"}
  fi
  export SLURM WHY_NOT SLURM_CONF=$SLURM/slurm.conf
}

# slurm_down: stops Slurm, for teardown_file.
slurm_down() {
  bash "$BATS_TEST_DIRNAME/../fixtures/slurm.sh" down "$SLURM"
}
