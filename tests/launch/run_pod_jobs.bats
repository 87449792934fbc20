#!/usr/bin/env bats
# run_pod.sh without a rank table, in the environments that Kubernetes, an operator, Volcano and ModelArts give a pod.

# bats file_tags=thorough
load ../helper
load ../hosts

setup() {
  pods_setup
  PORT=$(free_port)
}

@test "an Indexed Job with a headless service: pod 0 has the scheduler, and the ranks follow from the index" {
  local -a job=(MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 MS_SCHED_HOST=127.0.0.2 "MS_SCHED_PORT=$PORT")
  bare_pod 1 JOB_COMPLETION_INDEX=1 "${job[@]}" --
  bare_pod 0 JOB_COMPLETION_INDEX=0 "${job[@]}" --
  pod_ended 0 0 '*this pod has ranks 0,1 of 4, in a job of 2 pods*exit 0*'
  pod_ended 1 0 '*this pod has ranks 2,3 of 4, in a job of 2 pods*'
  [[ "$(ls "$STUB_OUT")" = $'rank_0.json\nrank_1.json\nrank_2.json\nrank_3.json\nscheduler.json' ]]
  [[ "$(places RANK_ID DEVICE_ID RANK_SIZE MS_NODE_ID MS_SCHED_HOST MS_SCHED_PORT MS_ROLE RANK_TABLE_FILE JOB_COMPLETION_INDEX)" = "\
0 0 4 0 127.0.0.2 $PORT MS_WORKER - 0
1 1 4 1 127.0.0.2 $PORT MS_WORKER - 0
2 0 4 2 127.0.0.2 $PORT MS_WORKER - 1
3 1 4 3 127.0.0.2 $PORT MS_WORKER - 1" ]] || fail "$(places RANK_ID MS_SCHED_HOST)"
  nobody_left
}

@test "an Indexed Job by options; a rank that fails ends the other pod, too" {
  export STUB_DO='0: wait; 1: await 0 2 3, exit 5; 2: wait; 3: wait'
  local -a words=(--worker_num 4 --local_worker_num 2 --master_addr localhost --master_port "$PORT")
  bare_pod 0 POD_IP=127.0.0.1 JOB_COMPLETION_INDEX=0 -- "${words[@]}"
  bare_pod 1 POD_IP=127.0.0.1 JOB_COMPLETION_INDEX=1 -- "${words[@]}"
  pod_ended 0 5 '*rank 1 (device 1) exited with code 5*'
  pod_ended 1 5 '*: pod-0: rank 1 (device 1) exited with code 5*'
}

@test "ascend-operator with a pod for the scheduler: that pod has the scheduler alone, the others its ranks" {
  local -a job=(MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 MS_SERVER_NUM=0 "MS_SCHED_PORT=$PORT")
  unset STUB_SCHEDULER_EXIT
  bare_pod 0 MS_ROLE=MS_SCHED NPU_POD=false MS_NODE_RANK=0 MS_SCHED_HOST=127.0.0.2 "${job[@]}" --
  eventually test -s "$STUB_OUT/scheduler.json"
  [[ "$(recorded scheduler '[r.get("env", r)[n] for n in ("MS_ROLE", "MS_WORKER_NUM", "MS_SCHED_HOST", "MS_SCHED_PORT")]')" = "['MS_SCHED', '4', '127.0.0.2', '$PORT']" ]]
  bare_pod 1 MS_ROLE=MS_WORKER MS_NODE_RANK=0 MS_SCHED_HOST=localhost "${job[@]}" --
  pod_ended 1 0 '*this pod has ranks 0,1 of 4, in a job of 2 pods*'
  bare_pod 2 MS_ROLE=MS_WORKER MS_NODE_RANK=1 MS_SCHED_HOST=127.0.0.2 "${job[@]}" --
  pod_ended 2 0 '*this pod has ranks 2,3 of 4*'
  [[ "$(places RANK_ID MS_SCHED_HOST MS_SCHED_PORT MS_NODE_ID MS_SERVER_NUM)" = "\
0 127.0.0.1 $PORT 0 -
1 127.0.0.1 $PORT 1 -
2 127.0.0.2 $PORT 2 -
3 127.0.0.2 $PORT 3 -" ]]
  kill -TERM "${PIDS[0]}"
  pod_ended 0 143 "*run_pod.sh: this pod runs no ranks, only MindSpore's scheduler, logs in logs0/*"
  nobody_left
}

@test "the scheduler's pod ends as the scheduler does" {
  local -a job=(MS_ROLE=MS_SCHED MS_WORKER_NUM=4 MS_SCHED_HOST=127.0.0.2 "MS_SCHED_PORT=$PORT")
  bare_pod 0 "${job[@]}" --
  pod_ended 0 0 '*'
  bare_pod 0 "${job[@]}" STUB_SCHEDULER_EXIT=3 --
  pod_ended 0 3 "*MindSpore's scheduler exited with code 3*exit 3*"
}

@test "the operator gave the scheduler's pod devices: it has the scheduler, and ranks 0 and 1" {
  bare_pod 0 MS_ROLE=MS_SCHED NPU_POD=true MS_NODE_RANK=0 MS_SCHED_HOST=127.0.0.2 MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 "MS_SCHED_PORT=$PORT" --
  pod_ended 0 0 '*this pod has ranks 0,1 of 4*'
  [[ "$(ls "$STUB_OUT")" = $'rank_0.json\nrank_1.json\nscheduler.json' ]]
}

@test "a Volcano Job: the pods and the scheduler come from VC_WORKER_HOSTS, the number from VK_TASK_INDEX" {
  local -a job=('VC_WORKER_HOSTS=localhost,job-worker-1.job' VC_WORKER_NUM=2 MS_LOCAL_WORKER=2 "MS_SCHED_PORT=$PORT")
  bare_pod 1 VK_TASK_INDEX=1 VC_TASK_INDEX=1 "${job[@]}" --
  bare_pod 0 POD_IP=127.0.0.1 VK_TASK_INDEX=0 VC_TASK_INDEX=0 "${job[@]}" --
  pod_ended 0 0 '*this pod has ranks 0,1 of 4, in a job of 2 pods*'
  pod_ended 1 0 '*this pod has ranks 2,3 of 4, in a job of 2 pods*'
}

@test "ModelArts: cards, hosts and number come from MA_NUM_GPUS, VC_WORKER_HOSTS and VC_TASK_INDEX" {
  local -a job=('VC_WORKER_HOSTS=localhost,modelarts-job-worker-1.modelarts-job' VC_WORKER_NUM=2 MA_NUM_HOSTS=2 MA_NUM_GPUS=2 "MS_SCHED_PORT=$PORT")
  bare_pod 1 VC_TASK_INDEX=1 "${job[@]}" --
  bare_pod 0 MA_CURRENT_IP=127.0.0.1 POD_IP=127.0.0.1 VC_TASK_INDEX=0 "${job[@]}" --
  pod_ended 0 0 '*this pod has ranks 0,1 of 4, in a job of 2 pods*'
  pod_ended 1 0 '*this pod has ranks 2,3 of 4, in a job of 2 pods*'
}

@test "one pod alone needs neither table nor operator" {
  bare_pod 0 MS_LOCAL_WORKER=2 --
  pod_ended 0 0 '*2 ranks on devices 0,1*exit 0*'
  [[ "$(places RANK_ID RANK_SIZE MS_SCHED_HOST)" = $'0 2 127.0.0.1\n1 2 127.0.0.1' ]]
}

@test "on NPUs ASCEND_VISIBLE_DEVICES gives the ranks their devices" {
  export PATH=$FIXTURES/bin:$PATH
  TARGET=Ascend bare_pod 0 ASCEND_VISIBLE_DEVICES=4,5,6,7 --
  pod_ended 0 0 '*4 ranks on devices 4-7*exit 0*'
  [[ "$(places RANK_ID DEVICE_ID RANK_SIZE MS_ROLE)" = $'0 4 4 MS_WORKER\n1 5 4 MS_WORKER\n2 6 4 MS_WORKER\n3 7 4 MS_WORKER' ]] || fail "$(places RANK_ID DEVICE_ID)"
}

@test "the scheduler's host is unknown to DNS: exit 124 with the reason" {
  bare_pod 1 MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 JOB_COMPLETION_INDEX=1 MS_SCHED_HOST=job-0.invalid -- --pod_wait 1
  pod_ended 1 124 "*waiting: the scheduler's host job-0.invalid has no address*waited for 1 s: *publishNotReadyAddresses*"
}

# ---- contradictions, and what is missing: nothing starts ---------------------------------------------

# wrong STATUS PATTERN [NAME=VALUE...] -- WORD...: the pod is refused with one line
wrong() {
  local -a variables=(POD_IP=127.0.0.3)
  local -ra outcome=("$1" "$2")
  shift 2
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  stubbed run_pod.sh --device_target "${TARGET:-CPU}" "${@:2}" config.yaml
  refused_later "${outcome[@]}" env "${variables[@]}" "${STUBBED[@]}"
}

@test "contradictory and wrong variables are refused, each with its names" {
  wrong 78 '*contradictory variables: MS_NODE_RANK is 1, but JOB_COMPLETION_INDEX is 0; correct the manifest*' \
    MS_NODE_RANK=1 JOB_COMPLETION_INDEX=0 MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 --
  wrong 78 '*contradictory variables: VC_WORKER_HOSTS is 3, but MS_WORKER_NUM / MS_LOCAL_WORKER is 2;*' \
    VC_WORKER_HOSTS=a,b,c MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 VK_TASK_INDEX=1 --
  wrong 78 '*5 ranks in all (MS_WORKER_NUM) are not a multiple of 2 in each pod (MS_LOCAL_WORKER);*' MS_WORKER_NUM=5 MS_LOCAL_WORKER=2 --
  wrong 78 '*MS_NODE_RANK is 2, but the job has 2 pods (MS_WORKER_NUM / MS_LOCAL_WORKER), which count from 0;*' \
    MS_NODE_RANK=2 MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 --
  wrong 78 '*MS_WORKER_NUM=many is not a number from 1 to 65536;*' MS_WORKER_NUM=many --
  wrong 78 '*MS_ROLE=MS_PSERVER is neither MS_SCHED nor MS_WORKER;*' MS_ROLE=MS_PSERVER --
  wrong 78 '*MS_SCHED_HOST: "-oProxyCommand=x" is neither the name nor the address of a host;*' MS_SCHED_HOST=-oProxyCommand=x --
  wrong 78 '*POD_IP: it is empty; the pod has no IP, *' POD_IP= --
  wrong 78 '*POD_IP=localhost: this is not an IP address;*' POD_IP=localhost --
  wrong 78 '*ASCEND_VISIBLE_DEVICES: "0,0" names device 0 twice*' ASCEND_VISIBLE_DEVICES=0,0 --
  wrong 2 '*nothing says how many ranks this pod has; set MS_LOCAL_WORKER, or give --local_worker_num' A=1 --
  wrong 2 '*nothing says which of the 2 pods this is; set MS_NODE_RANK,*' MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 --
  wrong 2 "*nothing says in which pod MindSpore's scheduler is; set MS_SCHED_HOST,*" MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 MS_NODE_RANK=1 --
  wrong 78 '*JOB_COMPLETION_INDEX is 1, so there are several pods, but nothing says how many; set MS_WORKER_NUM*' \
    JOB_COMPLETION_INDEX=1 MS_LOCAL_WORKER=2 --
  wrong 78 '*MS_ROLE=MS_SCHED: nothing says for how many ranks the scheduler is; set MS_WORKER_NUM*' MS_ROLE=MS_SCHED --
  all_refused
}

@test "on NPUs the number of devices differs from MS_LOCAL_WORKER" {
  TARGET=Ascend wrong 78 '*contradictory variables: MS_LOCAL_WORKER is 8, but ASCEND_VISIBLE_DEVICES is 4;*' \
    ASCEND_VISIBLE_DEVICES=0-3 MS_LOCAL_WORKER=8 MS_WORKER_NUM=16 MS_NODE_RANK=1 --
  all_refused
}

# ---- a rank table that the pods make -----------------------------------------------------------------

# sharing NUMBER [WORD...]: a pod of an Indexed Job that makes its part of the rank table
sharing() {
  local device
  for device in 0 1; do
    printf 'address_%d=10.78.%d.%d\n' "$device" "$1" "$((device + 1))"
  done >"hccn$1.conf"
  bare_pod "$1" "JOB_COMPLETION_INDEX=$1" MS_WORKER_NUM=4 MS_LOCAL_WORKER=2 -- --table_dir shared --hccn_conf "hccn$1.conf" "${@:2}"
}

@test "the pods make their rank table in a folder that they share, whatever an earlier start has left there" {
  mkdir shared
  table 127.0.0.8 127.0.0.9 >shared/hccl.json
  printf 'an earlier start' >shared/server_1.json
  sharing 1
  eventually says 1 waiting:
  sharing 0
  pod_ended 0 0 '*this pod has ranks 0,1 of 4, in a job of 2 pods*'
  pod_ended 1 0 '*this pod has ranks 2,3 of 4*'
  [[ "$(ls shared)" = $'hccl.json\nserver_0.json\nserver_1.json' ]]
  python "$PROJECT/hccl_tools/validate_hccl.py" shared/hccl.json
  [[ "$(python -c 'import json
for server in json.load(open("shared/hccl.json"))["server_list"]:
    print(server["server_id"], *(device["rank_id"] + "=" + device["device_ip"] for device in server["device"]))')" = "\
127.0.0.2 0=10.78.0.1 1=10.78.0.2
127.0.0.3 2=10.78.1.1 3=10.78.1.2" ]]
}

@test "a pod does not bring its part: pod 0 names it, and ends with 124" {
  sharing 0 --pod_wait 1
  pod_ended 0 124 '*waiting: the devices of pod 1 are not in shared yet; the job has 2 pods*waited for 1 s: *kubectl get pods*'
}

@test "the shared folder cannot be made" {
  : >shared
  sharing 1
  pod_ended 1 78 '*--table_dir *shared: *; name a folder on a volume that all pods can write'
}
