#!/usr/bin/env bats
# --import_once for jobs of several hosts: pods, run_cluster.sh on each host, and mpirun over ssh.

# bats file_tags=thorough
load ../helper
load ../hosts
load ../lab/lab

setup() {
  pods_setup
  printf 'import os\nprint("heavy imported by", os.getpid(), flush=True)\n' >heavy.py
  PYTHONPATH+=:$WORLD # the program is elsewhere
}

teardown() {
  lab_down
  end_left_over
}

# shared LOG...: one process has imported for these ranks
shared() {
  [[ "$(grep -hm1 '^heavy imported by' "$@" | uniq -c | awk '{print $1}')" == "$#" ]] || fail "$(head "$@")"
}

@test "each pod has a parent of its ranks" {
  table >"$TABLE"
  export STUB_DO=''
  pod 0 -- --import_once=heavy
  pod 1 -- --import_once=heavy
  pod_ended 1 0 '*this pod has ranks 2,3 of 4*'
  pod_ended 0 0 '*this pod has ranks 0,1 of 4*'
  shared logs0/latest/rank_{0,1}.log
  shared logs1/latest/rank_{2,3}.log
  [[ "$(places RANK_ID DEVICE_ID SERVER_ID)" = $'0 0 0\n1 1 0\n2 0 1\n3 1 1' ]] || fail "$(places RANK_ID DEVICE_ID SERVER_ID)"
  nobody_left
}

@test "a rank of a pod fails: all pods end with its code, and their ranks with them" {
  table >"$TABLE"
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: await 0 1 2, exit 7'
  pod 0 -- --import_once=heavy
  pod 1 -- --import_once=heavy
  pod_ended 1 7 '*rank 3 (device 1) exited with code 7 *'
  pod_ended 0 7 '*: 127.0.0.3: rank 3 (device 1) exited with code 7 *'
  shared logs0/latest/rank_{0,1}.log
  nobody_left
}

@test "run_cluster.sh on a host of a rank table: its ranks have a parent" {
  server_table 127.0.0.2 127.0.0.3
  mkdir data
  ends 0 '*' cluster --import_once=heavy data hccl.json 4 2
  shared logs/latest/rank_{2,3}.log
  [[ "$(places RANK_ID DEVICE_ID SERVER_ID)" = $'2 0 1\n3 1 1' ]] || fail "$(places RANK_ID DEVICE_ID SERVER_ID)"
}

# from_host_0 WORD...: from the first host of the lab, the ranks of the hostfile
from_host_0() {
  on 0 bash "$SCRIPTS/run_cluster.sh" --device_target CPU --config config.yaml --grace 2 --import_once=heavy --hostfile hosts "$@" .
}

@test "mpirun over ssh: each host has a parent, and a host that cannot fork is named" {
  need mpirun ssh
  lab_of_two 2
  ends 0 '*' from_host_0 --train_script "$FIXTURES/stub_trainer.py"
  shared logs/latest/rank_{0,1}.log
  shared logs/latest/rank_{2,3}.log
  [[ "$(places RANK_ID DEVICE_ID LOCAL_RANK)" = $'0 0 0\n1 1 1\n2 0 0\n3 1 1' ]] || fail "$(places RANK_ID DEVICE_ID LOCAL_RANK)"
  STUB_DO='0: wait; 1: wait; 2: wait; 3: await 0 1 2, exit 7' ends 7 '*rank 3 (device 1 of 10.77.0.2) exited with code 7 *' \
    from_host_0 --train_script "$FIXTURES/stub_trainer.py"
  printf 'import os, socket\nif os.uname().nodename == "node1":\n    kept = socket.socket()\n' >heavy.py
  ends 0 '*note: --import_once: node1: the import of heavy opens socket:*each rank imports for itself*' \
    from_host_0 --train_script "$FIXTURES/stub_trainer.py"
}
