#!/usr/bin/env bats
# The pods of a job are compared without ssh: each types the same command, and they meet at one of them.  Each pod is a
# host of the lab.

# bats file_tags=thorough
load ../helper
load ../hosts
load ../lab/lab

setup() {
  pods_setup
}

teardown() {
  lab_down
  end_left_over
}

# as_root HOST COMMAND...: what only root of the host may do.
as_root() {
  timeout -k 5 120 "$LAB_SH" root "$@"
}

# on_pod NUMBER COMMAND...: in the background on its host, with the environment of a pod of an Indexed Job with PODS pods
on_pod() {
  local -r number=$1
  : >"stdout$number"
  : >"stderr$number"
  set -m
  on "$number" env KUBERNETES_SERVICE_HOST=10.96.0.1 "POD_IP=10.77.0.$((number + 1))" MS_SCHED_HOST=node0 "JOB_COMPLETION_INDEX=$number" \
    "MS_WORKER_NUM=$((2 * PODS))" MS_LOCAL_WORKER=2 "${@:2}" >"stdout$number" 2>"stderr$number" 3>&- &
  set +m
  PIDS[number]=$!
}

# check PODS [NAME=VALUE...]: every pod checks
check() {
  PODS=$1
  local number
  for ((number = 0; number < PODS; number++)); do
    on_pod "$number" "${@:2}" bash "$SCRIPTS/preflight.sh" --pod_wait 60
  done
}

# tells NUMBER STATUS PATTERN: the pod ends so, prints what fits, and says nothing on stderr
tells() {
  pod_ended "$1" "$2" ''
  # shellcheck disable=SC2053 # a pattern is meant
  [[ $output == $3 ]] || fail "pod $1 prints: $output"
}

@test "pods: without a fault each prints one line" {
  lab_up 3
  check 3
  tells 0 0 '3 hosts agree; nothing blocks'
  tells 1 0 '3 hosts agree; nothing blocks'
  tells 2 0 '3 hosts agree; nothing blocks'
}

@test "pods: a difference is named; pod 0 prints the whole, the others their own part" {
  lab_up 3
  as_root 2 ip link set eth0 mtu 1400
  check 3
  tells 0 1 $'This slows it:\n  node2: MTU 1400; the other 2 hosts: 1500\n    -> *\n3 hosts, 1 finding: 1 slowing; nothing blocks'
  tells 1 1 'node1: nothing was found on it; the log of node0 has all: 3 hosts, 1 finding: 1 slowing; nothing blocks'
  tells 2 1 'node2: MTU 1400; the other 2 hosts: 1500; the log of node0 has all: 3 hosts, *'
}

@test "pods: what would stop the job is exit 78 in all of them" {
  lab_up 2
  as_root 1 mount -t tmpfs -o size=8m tmpfs /dev/shm
  check 2
  tells 0 78 $'This stops the job:\n  node1: 8.0 MiB free in /dev/shm; at least 16.0 MiB is needed\n    -> *'
  tells 1 78 'node1: 8.0 MiB free in /dev/shm; *'
}

@test "pods: links are tried from pod to pod: a port that one drops is named" {
  lab_up 3
  as_root 1 ip rule add pref 50 iif eth0 ipproto tcp dport 60000 blackhole || skip "this kernel has no rules for ports"
  as_root 1 ip rule add pref 100 lookup local
  as_root 1 ip rule del pref 0 lookup local
  check 3
  tells 0 78 $'This stops the job:\n  node1: no connection from other hosts succeeds at port 60000: nothing comes back*1 finding: 1 blocking'
  tells 1 78 'node1: no connection from other hosts succeeds at port 60000: *'
  tells 2 78 'node2: nothing was found on it; *'
}

@test "pods: one that does not come is named after the limit, and the others are compared all the same" {
  lab_up 3
  PODS=3
  as_root 1 ip link set eth0 mtu 1400
  on_pod 0 bash "$SCRIPTS/preflight.sh" --pod_wait 4
  on_pod 1 bash "$SCRIPTS/preflight.sh" --pod_wait 60
  tells 0 78 $'This stops the job:\n  pod-2: no answer; it has not connected within 4 s; see: kubectl get pods -o wide\nThis slows it:\n  *MTU 1*'
  tells 1 78 'node1: MTU 1400; the log of node0 has all: *'
}

@test "pods: where the first one is missing, the others say what they wait for" {
  lab_up 2
  PODS=2
  on_pod 1 bash "$SCRIPTS/preflight.sh" --pod_wait 1
  pod_ended 1 78 'preflight.sh: nobody answers at node0 port 8119 after 1 s (*); start the same command in all pods*'
}

@test "pods: one that ends while the others wait may come again" {
  lab_up 3
  PODS=3
  on_pod 0 bash "$SCRIPTS/preflight.sh" --pod_wait 60
  on_pod 1 bash -c 'echo $$ >pid && exec bash "$@"' - "$SCRIPTS/preflight.sh" --pod_wait 60
  eventually on 0 sh -c 'ss -Htn state established sport = :8119 | grep -q 8119'
  on 1 kill -KILL "$(<pid)"
  eventually gone "${PIDS[1]}"
  on_pod 1 bash "$SCRIPTS/preflight.sh" --pod_wait 60
  on_pod 2 bash "$SCRIPTS/preflight.sh" --pod_wait 60
  tells 0 0 '3 hosts agree; nothing blocks'
  tells 1 0 '3 hosts agree; nothing blocks'
}

@test "pods: an operator's pod for the scheduler compares the others, and is not compared" {
  lab_up 3
  as_root 0 mount -t tmpfs -o size=8m tmpfs /dev/shm
  PODS=2
  on_pod 0 MS_ROLE=MS_SCHED JOB_COMPLETION_INDEX= bash "$SCRIPTS/preflight.sh" --pod_wait 60
  on_pod 1 MS_ROLE=MS_WORKER JOB_COMPLETION_INDEX=0 bash "$SCRIPTS/preflight.sh" --pod_wait 60
  on_pod 2 MS_ROLE=MS_WORKER JOB_COMPLETION_INDEX=1 HCCL_BUFFSIZE=7 bash "$SCRIPTS/preflight.sh" --pod_wait 60
  tells 0 1 $'This may surprise:\n  node1: HCCL_BUFFSIZE is not set; node2: HCCL_BUFFSIZE=7*\n2 hosts, *'
  tells 2 1 'node2: HCCL_BUFFSIZE=7; the log of node0 has all: *'
}

@test "pods: with an operator's rank table they meet at the pod of rank 0" {
  lab_up 2
  table 10.77.0.1 10.77.0.2 >"$TABLE"
  check 2 "RANK_TABLE_FILE=$TABLE" env -u MS_SCHED_HOST -u JOB_COMPLETION_INDEX
  tells 0 0 '2 hosts agree; nothing blocks'
  tells 1 0 '2 hosts agree; nothing blocks'
}

@test "pods: without IPv4 they meet and are compared by IPv6" {
  lab_up 2
  local host
  for host in 0 1; do
    as_root "$host" ip -6 address add "fd77::$((host + 1))/64" dev eth0 nodad || skip "this kernel has no IPv6"
    as_root "$host" bash -c 'printf "fd77::1 six-0\n" >>/etc/hosts'
    as_root "$host" ip -4 address flush dev eth0
  done
  as_root 1 ip link set eth0 mtu 1400
  PODS=2
  for host in 0 1; do
    on_pod "$host" "POD_IP=fd77::$((host + 1))" MS_SCHED_HOST=six-0 bash "$SCRIPTS/preflight.sh" --pod_wait 60
  done
  tells 0 1 $'This slows it:\n  node0: MTU 1500; node1: MTU 1400\n*1 finding: 1 slowing; nothing blocks'
  tells 1 1 'node1: MTU 1400; *'
}

# ---- --preflight of run_pod.sh -----------------------------------------------------------------------

# launch_in NUMBER OPTION...: run_pod.sh --preflight in this pod
launch_in() {
  on_pod "$1" STUB_DO= STUB_SCHEDULER_EXIT=0 bash "$SCRIPTS/run_pod.sh" --device_target CPU --preflight --log_dir "logs$1" "${@:2}" \
    --train_script "$FIXTURES/stub_trainer.py" config.yaml
}

# launch PODS: the same in every pod
launch() {
  PODS=$1
  local number
  for ((number = 0; number < PODS; number++)); do
    launch_in "$number" --pod_wait 60
  done
}

# kept NUMBER: what launch.json of the pod has of the check
kept() {
  python -c 'import json, sys; p = json.load(open(sys.argv[1]))["preflight"]; print(p["verdict"], p["hosts"], [f["text"] for f in p["findings"]], sorted(p["digests"]))' \
    "logs$1/latest/launch.json"
}

@test "run_pod.sh --preflight: pods that are alike start, and differences are in launch.json of each" {
  lab_up 2
  as_root 1 ip link set eth0 mtu 1400
  launch 2
  pod_ended 0 0 '*node0: MTU 1500; node1: MTU 1400*2 hosts, 1 finding: 1 slowing; nothing blocks*exit 0*'
  pod_ended 1 0 '*: node1: MTU 1400; the log of node0 has all: 2 hosts, 1 finding: 1 slowing; nothing blocks*'
  [[ "$(kept 0)" == "differs 2 ['node0: MTU 1500; node1: MTU 1400'] ['node0', 'node1']" ]] || fail "$(kept 0)"
  [[ "$(kept 1)" == "differs 2 ['node0: MTU 1500; node1: MTU 1400'] []" ]] || fail "$(kept 1)"
  python -c 'import json, sys, jsonschema; jsonschema.validate(*(json.load(open(path)) for path in sys.argv[1:]))' \
    logs1/latest/launch.json "$PROJECT/schemas/launch.schema.json"
}

@test "run_pod.sh --preflight: what would stop the job refuses the launch in all pods" {
  lab_up 2
  as_root 1 mount -t tmpfs -o size=8m tmpfs /dev/shm
  launch 2
  pod_ended 0 78 '*This stops the job:*node1: 8.0 MiB free in /dev/shm*--preflight: nothing was started*'
  pod_ended 1 78 '*node1: 8.0 MiB free in /dev/shm; *the log of node0 has all*--preflight: nothing was started*'
  [[ ! -e logs0 && ! -e logs1 ]]
}

@test "run_pod.sh --preflight: a pod that does not come ends the others with 124, after which they start again" {
  lab_up 3
  PODS=3
  launch_in 0 --pod_wait 3
  launch_in 1 --pod_wait 60
  pod_ended 0 124 '*This stops the job:*pod-2: no answer; it has not connected within 3 s;*--preflight: nothing was started*'
  pod_ended 1 124 '*node1: nothing was found on it; the log of node0 has all*--preflight: nothing was started*'
  launch_in 1 --pod_wait 1
  pod_ended 1 124 '*nobody answers at 10.77.0.1 port 8119 after 1 s *'
}

@test "run_pod.sh --preflight in one pod, and not in the other: both say so" {
  lab_up 2
  PODS=2
  on_pod 0 STUB_DO= bash "$SCRIPTS/run_pod.sh" --device_target CPU --pod_wait 60 --preflight --log_dir logs0 --train_script "$FIXTURES/stub_trainer.py" config.yaml
  on_pod 1 STUB_DO= bash "$SCRIPTS/run_pod.sh" --device_target CPU --pod_wait 3 --log_dir logs1 --train_script "$FIXTURES/stub_trainer.py" config.yaml
  pod_ended 1 78 '*the pods of another job are checked there, or its launcher runs with different options*'
  kill -TERM "${PIDS[0]}"
}
