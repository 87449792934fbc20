# shellcheck shell=bash
# For bats files: pods of a job, each a launcher with the environment that an operator gives it.

# pods_setup: a world in which no variable tells of a pod.
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

# table [ADDRESS...]: what an operator writes for pods with these addresses (127.0.0.2 127.0.0.3), two devices each; no two
# tables of the tests are the same, because ports follow from it
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

# pod NUMBER [NAME=VALUE...] -- WORD...: the launcher of pod NUMBER (127.0.0.2 is pod 0) in the background, on CPU, with logs
# and messages of its own, with these variables and those that an operator sets beside a rank table
pod() {
  bare_pod "$1" "XDL_IP=192.168.1.$(($1 + 1))" "RANK_TABLE_FILE=$TABLE" MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 "MS_NODE_RANK=$1" "${@:2}"
}

# bare_pod NUMBER [NAME=VALUE...] -- WORD...: the same with its address and these variables alone
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

# pod_ended NUMBER STATUS PATTERN: its launcher has ended so, with messages that fit
pod_ended() {
  eventually gone "${PIDS[$1]}"
  status=0
  wait "${PIDS[$1]}" || status=$?
  stderr=$(<"stderr$1")
  output=$(<"stdout$1")
  was "$2" "$3"
}

# says NUMBER TEXT: its messages have the text
says() {
  grep -qF -- "$2" "stderr$1"
}

# one_pod STATUS PATTERN [NAME=VALUE...] -- WORD...: pod 1 ends so by itself
one_pod() {
  pod 1 "${@:3}"
  pod_ended 1 "$1" "$2"
}
