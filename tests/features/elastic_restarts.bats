#!/usr/bin/env bats
# A job that loses a host goes on without it, or with a spare one: real mpirun over real ssh, in the lab.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  need mpirun ssh
  setup_world
  HCCN=()
  export STUB_DO
}

teardown() {
  lab_down
  end_left_over
}

# waiting N: N ranks that wait in the first attempt, and end with 0 in the next one.
waiting() {
  local rank
  STUB_DO=''
  for ((rank = 0; rank < $1; rank++)); do
    STUB_DO+="$rank: first wait; "
  done
}

# launch_on_hosts N SCRIPT ARGUMENT...: from host 0, in the background; waits until its N ranks run. They may be started
# again twice.
launch_on_hosts() {
  set -m
  on 0 bash "$SCRIPTS/$2" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" --config config.yaml \
    --grace 1 --max_restarts 2 "${@:3}" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- &
  LAUNCHER=$!
  set +m
  # shellcheck disable=SC2046 # a list of numbers
  eventually ranks_up $(seq 0 $(($1 - 1))) || fail "$(<"$BATS_TEST_TMPDIR/stderr")"
}

# ended_well PATTERN: the launch has ended with 0, its messages fit, and launch.json is what it should be.
ended_well() {
  ended
  was 0 "$1"
  launch_json_fits
}

# hosts_now: the hosts of the ranks of the last attempt, in their order.
hosts_now() {
  launch_json '" ".join(rank["host"] for rank in r["ranks"])'
}

# lost: the hosts that are lost, with the ranks that they had.
lost() {
  launch_json '[(loss["host"], loss["attempt"], loss["ranks"]) for loss in r["lost_hosts"]]'
}

@test "a host is switched off: the job continues without it, with fewer ranks, and names it" {
  lab_up 3
  waiting 6
  launch_on_hosts 6 run_mpirun_1.sh node0:2,node1:2,10.77.0.3:2
  "$LAB_SH" off 1
  ended_well '*: the host node1 (ranks 2,3) is lost after *: node1 (ranks 2,3) is excluded from this job from now on: *
*: the job continues with 4 ranks on 2 hosts; it had 6 ranks
*: restart 1 of 2 in 1 s
*: the job continued without node1 (*'
  [[ "$(hosts_now) $(lost)" = "node0 node0 10.77.0.3 10.77.0.3 [('node1', 0, [2, 3])]" ]] || fail "$(hosts_now) $(lost)"
  [[ "$(launch_json 'r["outcome"]["attempts"][0]["lost_host"], "lost_host" in r["outcome"]')" = "('node1', False)" ]]
  [[ "$(launch_json '[len(plan["ranks"]) for plan in r["earlier_plans"]]')" = '[6]' ]]
  [[ "$(recorded rank_3 '[r["env"][n] for n in ("RANK_SIZE", "WORLD_SIZE", "MS_WORKER_NUM", "SERVER_ID", "RESUME", "RESUME_RANK_SIZES")]')" = "['4', '4', '4', '1', '1', '6']" ]]
  [[ -e logs/latest/restart_1/rank_3.log && ! -e logs/latest/restart_1/plan ]]
}

@test "a spare host takes the place of the lost one: the others keep their ranks" {
  lab_up 4
  STUB_DO='0: first wait; 1: first wait; 2: first wait'
  printf 'node0 slots=1\nnode1 slots=1\nnode2 slots=1\nnode3 slots=1 spare\n' >hosts
  launch_on_hosts 3 run_mpirun_2.sh hosts
  grep -q ': spare, in case a host is lost: node3' "$BATS_TEST_TMPDIR/stderr"
  "$LAB_SH" off 1
  ended_well '*: the job continues with 3 ranks on 3 hosts; spare hosts now in use: node3*'
  [[ "$(hosts_now) $(launch_json 'r["spares"]')" = "node0 node3 node2 ['node3']" ]] || fail "$(hosts_now)"
  [[ "$(recorded rank_1 'r["env"]["RESUME_RANK_SIZES"]')" = 3 ]]
}

@test "hosts that go together, spare ones too: those that do not answer are found, and the job goes on with the rest" {
  lab_up 5
  waiting 4
  launch_on_hosts 4 run_mpirun_1.sh --spare 1 node0:1,node1:1,node2:1,node3:1,node4:1
  "$LAB_SH" link 1 down
  "$LAB_SH" link 2 down
  "$LAB_SH" link 4 down
  ended_well '*: the job continues with 2 ranks on 2 hosts; it had 4 ranks*'
  [[ "$(hosts_now)" = 'node0 node3' ]]
  [[ "$(lost)" == *"('node1', 0, [1])"* && "$(lost)" == *"('node2', 0, [2])"* && "$(lost)" == *"('node4', 0, [])"* ]] || fail "$(lost)"
}

@test "a host that answers again stays out; a rank that fails afterwards is started again where it was" {
  lab_up 3
  STUB_DO='0: first wait; 1: first wait; 2: first wait'
  launch_on_hosts 3 run_mpirun_1.sh node0:1,node1:1,node2:1
  STUB_DO=''
  on 1 pkill -KILL -x 'orted|prted' # the host itself is well
  ended_well '*: node1 (rank 1) is excluded from this job from now on: *'
  [[ "$(hosts_now)" = 'node0 node2' ]]
}

@test "with fewer ranks than --min_ranks the job ends, says why and has the code of the failure" {
  lab_up 2
  waiting 2
  launch_on_hosts 2 run_mpirun_1.sh --min_ranks 2 node0:1,node1:1
  "$LAB_SH" off 1
  ended
  [[ $status -ne 0 && $status -ne 78 ]]
  [[ $stderr == *': no restart 1: only 1 rank can still run, but --min_ranks is 2; lost: node1; '* && $stderr != *': restart 1 of'* ]] || fail "$stderr"
  [[ $stderr == *'lost with its host'* && $stderr == *': mpirun failed: '*'(host-lost)'* ]] || fail "$stderr"
  [[ "$(lost)" = "[('node1', 0, [1])]" ]]
  launch_json_fits
}

# cluster_of N MORE...: run_cluster.sh on N hosts of two devices, as many ranks, with these words.
cluster_of() {
  local host
  mkdir -p data
  for ((host = 0; host < $1; host++)); do
    printf '10.77.0.%d slots=2\n' "$((host + 1))"
  done >hosts
  waiting "$(($2 * 2))"
  launch_on_hosts "$(($2 * 2))" run_cluster.sh --hostfile hosts "${@:3}" data
}

# servers FILE: the servers of a rank table, with the numbers of their ranks.
servers() {
  python - "$1" <<'PY'
import json, sys

for server in json.load(open(sys.argv[1]))["server_list"]:
    print(server["server_id"], *(device["rank_id"] for device in server["device"]), server["device"][0]["device_ip"])
PY
}

@test "the rank table of the next attempt has no lost host, is on all the others, and the first one stays" {
  lab_up 3
  mkdir logs
  "$LAB_SH" root 2 mount -t tmpfs tmpfs "$WORLD/logs"
  cluster_of 3 3
  "$LAB_SH" off 1
  ended_well '*'
  [[ "$(servers logs/latest/hccl_3s_6p.json | wc -l)" = 3 ]]
  [[ "$(servers logs/latest/restart_1/hccl_2s_4p.json)" = $'10.77.0.1 0 1 10.78.0.1\n10.77.0.3 2 3 10.78.2.1' ]]
  [[ "$(recorded rank_3 'r["env"]["RANK_TABLE_FILE"]')" = "$(readlink -f logs/latest)/restart_1/hccl_2s_4p.json" ]]
  cmp logs/latest/restart_1/hccl_2s_4p.json <(on 2 cat "$(recorded rank_3 'r["env"]["RANK_TABLE_FILE"]')")
  python "$PROJECT/hccl_tools/validate_hccl.py" logs/latest/restart_1/hccl_2s_4p.json
}

@test "a spare server of a table of the user's: it gets the ranks of the lost one, and the table stays as it is" {
  lab_up 3
  python - >mine.json <<'PY'
import json

servers = [
    {"server_id": f"10.77.0.{n + 1}", "device": [
        {"device_id": str(d), "device_ip": f"10.78.{n}.{d + 1}", "rank_id": str(n * 2 + d)} for d in range(2)]}
    for n in range(3)
]
print(json.dumps({"version": "1.0", "server_count": "3", "server_list": servers, "status": "completed"}))
PY
  cp mine.json before.json
  cluster_of 3 2 --spare 1 --rank_table mine.json
  [[ "$(servers logs/latest/hccl_2s_4p.json)" = $'10.77.0.1 0 1 10.78.0.1\n10.77.0.2 2 3 10.78.1.1' ]]
  "$LAB_SH" off 1
  ended_well '*: the job continues with 4 ranks on 2 hosts; spare hosts now in use: 10.77.0.3*'
  [[ "$(servers logs/latest/restart_1/hccl_2s_4p.json)" = $'10.77.0.1 0 1 10.78.0.1\n10.77.0.3 2 3 10.78.2.1' ]]
  cmp mine.json before.json
}

# networks FILE: the rank and the inner network of every entry of a table of version 2.0.
networks() {
  python - "$1" <<'PY'
import json, sys

print(*(f'{rank["rank_id"]}:{rank["level_list"][0]["net_instance_id"]}' for rank in json.load(open(sys.argv[1]))["rank_list"]))
PY
}

@test "a spare host of a table of version 2.0, whose hosts the hostfile names: it gets the ranks of the lost one" {
  lab_up 3
  python - >mine.json <<'PY'
import json

ranks = [
    {"rank_id": n, "local_id": n % 2, "device_id": n % 2, "level_list": [
        {"net_layer": 0, "net_instance_id": f"srv{n // 2}", "net_type": "TOPO_FILE_DESC", "net_attr": "", "rank_addr_list": [
            {"addr_type": "EID", "addr": f"{n:032x}", "ports": ["0/0"], "plane_id": "plane_0"}]}]}
    for n in range(6)
]
print(json.dumps({"version": "2.0", "status": "completed", "rank_count": 6, "rank_list": ranks}))
PY
  cluster_of 3 2 --spare 1 --rank_table mine.json
  [[ "$(networks logs/latest/hccl_4p.json)" = '0:srv0 1:srv0 2:srv1 3:srv1' ]]
  "$LAB_SH" off 1
  ended_well '*: the job continues with 4 ranks on 2 hosts; spare hosts now in use: 10.77.0.3*'
  [[ "$(networks logs/latest/restart_1/hccl_4p.json)" = '0:srv0 1:srv0 2:srv2 3:srv2' ]]
  [[ "$(hosts_now)" = '10.77.0.1 10.77.0.1 10.77.0.3 10.77.0.3' ]]
}

@test "a signal while the next attempt is planned ends the job, and nothing is left" {
  lab_up 3
  printf '%s\n' '#!/bin/bash' '[[ ! -e ${0%/*}/slow ]] || { echo >"${0%/*}/asked"; exec sleep 61.5; }' 'exec ssh "$@"' \
    >"$BATS_TEST_TMPDIR/my_ssh"
  chmod +x "$BATS_TEST_TMPDIR/my_ssh"
  waiting 3
  launch_on_hosts 3 run_mpirun_1.sh --ssh "$BATS_TEST_TMPDIR/my_ssh" node0:1,node1:1,node2:1
  touch "$BATS_TEST_TMPDIR/slow"
  "$LAB_SH" off 1
  eventually test -e "$BATS_TEST_TMPDIR/asked"
  on 0 kill -TERM "$(launch_json 'r["run_dir"].rpartition("-")[2]')"
  ended
  [[ $status -ne 0 && $stderr == *': SIGTERM: stopping all ranks'* && $stderr != *'restart 1 of'* ]] || fail "$status $stderr"
  [[ $stderr == *'stopped by us'* || $stderr == *'end not reported'* ]] || fail "$stderr"
  run ! pgrep -fx 'sleep 61.5'
}

@test "a hostfile that is gone meanwhile: the job ends and says why" {
  lab_up 3
  waiting 3
  printf 'node0 slots=1\nnode1 slots=1\nnode2 slots=1\n' >hosts
  launch_on_hosts 3 run_mpirun_2.sh hosts
  rm hosts
  "$LAB_SH" off 1
  ended
  [[ $status -ne 0 && $stderr == *': no restart 1: HOSTFILE hosts cannot be read: No such file or directory; '* ]] || fail "$stderr"
}

# trains CONFIG RANK ARGUMENT...: the training of a config, on digits and without measurements, is on host 0 in the
# background, and RANK has saved more than twice. It may be started again once.
trains() {
  train_for_real
  digits_in digits
  sed '/^eval:/,$d' "$1" >no_eval.yaml
  set -m
  "$LAB_SH" run 0 timeout -k 5 400 bash "$SCRIPTS/run_mpirun_1.sh" --device_target CPU --config no_eval.yaml --max_restarts 1 "${@:3}" \
    -o train.dataset.dataset_root=digits >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- &
  LAUNCHER=$!
  set +m
  eventually saved_or_gone "$2"
  ! gone "$LAUNCHER" || fail "nothing is saved: $(<"$BATS_TEST_TMPDIR/stderr")"
}

saved_or_gone() {
  compgen -G "logs/latest/ckpt/rank_$1/*-[3-9]_*.json" >/dev/null || gone "$LAUNCHER"
}

# goes_on PATTERN: it ends well after a restart, from a checkpoint, in whatever epoch that is
goes_on() {
  eventually gone "$LAUNCHER" || fail "it does not end: $(<"$BATS_TEST_TMPDIR/stderr")"
  ended_well "*: restart 1 of 1 in 1 s*$1"
}

# trains_without HOST ARGUMENT...: LeNet-5 on three hosts, of which one is switched off meanwhile
trains_without() {
  trains "$PROJECT/configs/mnist/lenet5_digits.yaml" 0 "${@:2}" -- \
    -o scheduler.num_epochs=8 train.save_checkpoint_steps=20
  "$LAB_SH" off "$1"
  goes_on "*: the job continued without node$1 (*"
}

# loss_goes_on LOG LOG: the second log goes on from a checkpoint, with a loss near the end of the first one's, not near
# its beginning, up to the last epoch.
loss_goes_on() {
  grep -E "^continues after (step [0-9]+ of )?epoch [0-9]+, from .*/ckpt/rank_" "$2" || fail "$(<"$2")"
  grep -q '^epoch: 8 ' "$2" || fail "$(<"$2")"
  python - "$1" "$2" <<'PY' || fail "$(<"$1")" "$(<"$2")"
import re
import sys

before, after = ([float(loss) for loss in re.findall("loss is ([0-9.e-]+)", open(path).read())] for path in sys.argv[1:])
epochs = [int(number) for number in re.findall("epoch: ([0-9]+) ", open(sys.argv[2]).read())]
print(before[0], before[-1], after[0], after[-1], epochs[0])
sys.exit(not (epochs[0] >= 2 and after[0] < before[0] / 2 and min(after[-3:]) < before[0] / 5))
PY
}

# bats test_tags=trains
@test "real MindSpore: layers that were cut by hand for four ranks are cut anew for two" {
  lab_up 2
  trains "$PROJECT/configs/parallel/hybrid_digits.yaml" 3 --import_once node0:2,node1:2 -- -o scheduler.num_epochs=10
  "$LAB_SH" off 1
  goes_on '*'
  [[ $stderr == *': the job continues with 2 ranks on 1 host; it had 4 ranks'* ]] || fail "$stderr"
  grep -E "^continues after epoch [0-9]+, from .*/restart_1/resumed/rank_1/" logs/latest/restart_1/rank_1.log \
    || fail "$(<logs/latest/restart_1/rank_1.log)"
  [[ "$(launch_json 'r["resumed"]["ranks"]')" = 4 ]]
}

# bats test_tags=trains
@test "real MindSpore: a spare host goes on in the place of one that is switched off" {
  lab_up 3
  trains_without 1 --spare 1 node0:1,node1:1,node2:1
  [[ "$(hosts_now)" = 'node0 node2' ]]
  loss_goes_on logs/latest/rank_0.log logs/latest/restart_1/rank_0.log
  grep -q '^rank 1 of 2: 22 steps an epoch' logs/latest/restart_1/rank_1.log
}

# bats test_tags=trains
@test "real MindSpore: of three hosts with disks of their own one is switched off, and two go on from their checkpoints" {
  lab_up 3
  mkdir logs
  "$LAB_SH" root 2 mount -t tmpfs tmpfs "$WORLD/logs"
  trains_without 1 node0:1,node1:1,node2:1
  [[ "$(hosts_now)" = 'node0 node2' && $stderr == *'note: a step now has the samples of 2 ranks, not of 3 ranks'* ]] || fail "$stderr"
  on 2 cat "$(readlink -f logs/latest)/restart_1/rank_1.log" >rank_1.log
  loss_goes_on logs/latest/rank_0.log logs/latest/restart_1/rank_0.log
  grep -q '^rank 1 of 2: 22 steps an epoch' rank_1.log || fail "$(<rank_1.log)"
  grep -E '^continues after .* from .*/ckpt/rank_2/' rank_1.log || fail "$(<rank_1.log)" # its own: rank 1 was rank 2
}
