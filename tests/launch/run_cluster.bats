#!/usr/bin/env bats
# run_cluster.sh: typed on each server of a rank table, and once for all hosts of a hostfile.

# bats file_tags=thorough
load ../helper
load ../hosts
load ../lab/lab

setup() {
  setup_world
  mkdir data
  HCCN=() # run_cluster.sh has no such option: its tables are there, or come from the hosts
  export STUB_SCHEDULER_EXIT=0
}

teardown() {
  lab_down
  end_left_over
}

# table SERVER...: as server_table
table() {
  server_table "$@"
}

# named_table NAME[=HOST_IP]...: the same for servers that have names; a name with host_ip says where it is
named_table() {
  table "${@%%=*}"
  python - "$@" <<'PY'
import json, sys
table = json.load(open("hccl.json"))
for server, (name, _, address) in zip(table["server_list"], (word.partition("=") for word in sys.argv[1:])):
    server.update({"host_ip": address} if address else {})
with open("hccl.json", "w") as file:
    json.dump(table, file)
PY
}

# legacy_table SERVER...: jobstart_hccl.json, as ModelArts writes it, with two devices on each server
legacy_table() {
  python - "$@" >jobstart_hccl.json <<'PY'
import json, sys

instances = [{"pod_name": f"job-{n}", "server_id": name, "devices": [
    {"device_id": str(d), "device_ip": f"10.78.{n}.{d + 1}"} for d in range(2)]} for n, name in enumerate(sys.argv[1:])]
group = {"group_name": "job", "device_count": "4", "instance_count": "2", "instance_list": instances}
print(json.dumps({"status": "completed", "group_count": "1", "group_list": [group]}))
PY
}

# On both hosts no trainer runs; each sees its own processes only.
nobody_trains() {
  ! on 0 pgrep -f stub_trainer.py && ! on 1 pgrep -f stub_trainer.py
}

# ---- typed on each server --------------------------------------------------------------------------

@test "each server starts its own ranks; scheduler and port come from the table" {
  table 127.0.0.2 127.0.0.3
  cluster data hccl.json 4 2
  [[ "$(ls "$STUB_OUT")" = $'rank_2.json\nrank_3.json' ]]
  cluster data hccl.json 4 0
  [[ "$(ls "$STUB_OUT")" = $'rank_0.json\nrank_1.json\nrank_2.json\nrank_3.json\nscheduler.json' ]]
  [[ "$(recorded rank_3 '[r["env"][n] for n in ("RANK_ID", "DEVICE_ID", "RANK_SIZE", "MS_WORKER_NUM", "MS_SCHED_HOST")]')" = "['3', '1', '4', '4', '127.0.0.2']" ]]
  [[ "$(places RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE SERVER_ID DEVICE_NUM MASTER_ADDR)" = "\
0 0 4 2 0 2 127.0.0.2
1 1 4 2 0 2 127.0.0.2
2 0 4 2 1 2 127.0.0.2
3 1 4 2 1 2 127.0.0.2" ]]
  [[ "$(recorded rank_3 'r["env"]["RANK_TABLE_FILE"] + r["env"]["DATA_PATH"]')" = "$WORLD/hccl.json$WORLD/data" ]]
  [[ "$(recorded rank_3 'r["env"]["MS_SCHED_PORT"]')" = "$(recorded rank_0 'r["env"]["MS_SCHED_PORT"]')" ]]
}

@test "servers with different numbers of ranks: each rank knows its server, and how many ranks are on it" {
  python - >hccl.json <<'PY'
import json

servers = [
    {"server_id": f"127.0.0.{n}", "device": [
        {"device_id": str(d), "device_ip": f"10.78.{n}.{d + 1}", "rank_id": str(first + d)} for d in range(count)]}
    for n, first, count in ((2, 0, 1), (3, 1, 3), (4, 4, 2))
]
print(json.dumps({"version": "1.0", "server_count": "3", "server_list": servers, "status": "completed"}))
PY
  cluster data hccl.json 6 1
  cluster data hccl.json 6 4
  [[ "$(places RANK LOCAL_RANK LOCAL_WORLD_SIZE SERVER_ID DEVICE_NUM)" = $'1 0 3 1 3\n2 1 3 1 3\n3 2 3 1 3\n4 0 2 2 2\n5 1 2 2 2' ]]
}

@test "the table's digest is printed and kept, and another table has another one and another port" {
  local port
  table 127.0.0.2 127.0.0.3
  run --separate-stderr cluster data hccl.json 4 0
  [[ $stderr == *"sha256 $(sha256sum hccl.json | cut -c 1-16) (must be the same on every host)"* ]]
  [[ "$(launch_json 'r["rank_table"]["sha256"]')" = "$(sha256sum hccl.json | cut -d ' ' -f 1)" ]]
  port=$(recorded rank_0 'r["env"]["MS_SCHED_PORT"]')
  table 127.0.0.2 127.0.0.4
  cluster data hccl.json 4 0
  [[ "$(recorded rank_0 'r["env"]["MS_SCHED_PORT"]')" != "$port" ]]
}

@test "a scheduler that other servers' ranks need is not stopped when the own ranks have ended" {
  unset STUB_SCHEDULER_EXIT
  table 127.0.0.2 127.0.0.3
  launch_behind run_cluster.sh --config config.yaml data hccl.json 4 0
  eventually ranks_up 0 1
  eventually test -s "$STUB_OUT/scheduler.json"
  ranks_gone() { [[ -z $(grep -lszxF -e RANK_ID=0 -e RANK_ID=1 /proc/[0-9]*/environ | xargs -r grep -lszxF "TEST_MARK=$TEST_MARK") ]]; }
  eventually ranks_gone
  kill -0 "$LAUNCHER"
  end_by TERM
  [[ "$status" -eq 143 && "$(launch_json 'r["outcome"]["members"]["0"]["status"]')" = 0 ]]
}

@test "the scheduler's port is in use on the first server" {
  local port
  table 127.0.0.2 127.0.0.3
  cluster data hccl.json 4 0
  port=$(recorded rank_0 'r["env"]["MS_SCHED_PORT"]')
  python -c 'import signal, socket, sys
taken = socket.create_server(("127.0.0.2", int(sys.argv[1])))
print("taken", flush=True)
signal.pause()' "$port" >taken 3>&- &
  eventually test -s taken
  run --separate-stderr cluster data hccl.json 4 0
  kill "$!"
  [[ "$status" -eq 78 && $stderr == *"cannot listen at 127.0.0.2 port $port: Address already in use; set MS_SCHED_PORT"* ]]
  MS_SCHED_PORT=23456 cluster data hccl.json 4 2
  [[ "$(recorded rank_2 'r["env"]["MS_SCHED_PORT"]')" = 23456 ]]
}

@test "RANK_SIZE is not the table's" {
  table 127.0.0.2 127.0.0.3
  cluster_refused 78 "*RANK_SIZE 12: hccl.json has 4 ranks (127.0.0.2 has ranks 0 to 1; 127.0.0.3 has ranks 2 to 3); type 4" \
    data hccl.json 12 0
}

@test "RANK_START is not this host's" {
  table 127.0.0.2 192.0.2.9
  cluster_refused 78 "*RANK_START 2 is the first rank of 192.0.2.9; this host is a different server: 127.0.0.2 has ranks 0 to 1; type 0 here" \
    data hccl.json 4 2
  cluster_refused 78 "*RANK_START 1 is not the first rank of any server in the table; *type 0 here" data hccl.json 4 1
}

# refuses STATUS PATTERN WORD...: as cluster_refused; all_refused asks it
refuses() {
  refused_later "$1" "$2" cluster "${@:3}"
}

# kept NAME SERVER...: table, as NAME
kept() {
  table "${@:2}"
  mv hccl.json "$1"
}

@test "numbers that are none, no table, a bad one, one without this host or not in dictionary order, no data" {
  kept two.json 127.0.0.2
  refuses 2 "*RANK_START -1 is not a number from 0 to 65536" data two.json 2 -1
  refuses 2 "*RANK_SIZE 0 is not a number from 1 to 65536" data two.json 0 0
  refuses 2 "*RANK_SIZE two is not a number*" data two.json two 0
  refuses 78 "*DATA_PATH nowhere: no such folder*" nowhere two.json 2 0
  refuses 2 "*RANK_START is missing*" data two.json 2
  refuses 2 "*unknown option --rank_table: the rank table is the argument RANK_TABLE_FILE, or with --hostfile *" \
    --rank_table two.json data two.json 2 0
  kept order.json 127.0.0.3 127.0.0.2
  refuses 78 "*order.json*/server_list/1*dictionary order*" data order.json 4 0
  kept others.json 192.0.2.8 192.0.2.9
  refuses 78 "*this host is not one of its servers (192.0.2.8, 192.0.2.9); type the command on those*" data others.json 4 0
  refuses 78 "*the rank table no.json cannot be read: No such file or directory" data no.json 4 0
  printf '{"version": "1.0"' >bad.json
  refuses 78 "*bad.json: line 1, *" data bad.json 4 0
  kept far.json 127.0.0.2 192.0.2.9 # the others cannot reach the server of rank 0
  refuses 78 "*server 127.0.0.2 has rank 0, and the other servers cannot reach that address" data far.json 4 0
  all_refused
}

@test "a program's own --hostfile is none of ours" {
  table 127.0.0.2
  printf '#!/bin/sh\n' >prog
  chmod +x prog
  local words
  for words in 'data hccl.json 2 0 prog' '--quiet --grace 3 hccl.json 2 0 ./prog' 'data hccl.json 2 0 -m this' '--grace=3 hccl.json 2 0 show.py'; do
    touch show.py
    # shellcheck disable=SC2086 # several words
    ends 0 '*' bash "$SCRIPTS/run_cluster.sh" --device_target CPU --dry_run $words --hostfile theirs
    [[ $output == *' --hostfile theirs >'* ]] || fail "$output"
  done
}

@test "servers that have names, and their addresses in host_ip" {
  named_table "node_0=127.0.0.2" "node_1=127.0.0.3"
  cluster data hccl.json 4 2
  cluster data hccl.json 4 0
  [[ "$(places RANK SERVER_ID MASTER_ADDR)" = $'0 0 127.0.0.2\n1 0 127.0.0.2\n2 1 127.0.0.2\n3 1 127.0.0.2' ]]
}

@test "servers that have names: messages have both" {
  named_table "node_0=127.0.0.2" "node_1=192.0.2.9"
  cluster_refused 78 "*RANK_START 2 is the first rank of node_1 (192.0.2.9); this host is a different server: node_0 (127.0.0.2) has ranks 0 to 1; *" \
    data hccl.json 4 2
}

@test "a table of a legacy format is written as version 1.0 into the run's folder, and the file stays as it is" {
  legacy_table 127.0.0.2 127.0.0.3
  cp jobstart_hccl.json before.json
  cluster data jobstart_hccl.json 4 2
  run --separate-stderr cluster data jobstart_hccl.json 4 0
  [[ $status -eq 0 && $stderr == *"jobstart_hccl.json is of a legacy format; written as version 1.0 to "*"/hccl_of_legacy.json"* ]]
  [[ "$(places RANK DEVICE_ID MASTER_ADDR)" = $'0 0 127.0.0.2\n1 1 127.0.0.2\n2 0 127.0.0.2\n3 1 127.0.0.2' ]]
  [[ "$(launch_json 'json.load(open(r["rank_table"]["file"]))["version"]')" = 1.0 ]]
  cmp jobstart_hccl.json before.json
}

@test "a server_id with a blank at its end is the address that it was meant to be" {
  table "127.0.0.2 " "127.0.0.3"
  cluster data hccl.json 4 0
  [[ "$(recorded rank_1 'r["env"]["MASTER_ADDR"]')" = 127.0.0.2 ]]
}

@test "a name that no host has, of the only server: it is this one" {
  named_table no-such-job.invalid
  cluster data hccl.json 2 0
  [[ "$(places RANK MASTER_ADDR)" = $'0 127.0.0.1\n1 127.0.0.1' ]]
}

@test "names that no host has, of several servers: the table must say where they are" {
  named_table no-such-job-0.invalid no-such-job-1.invalid=127.0.0.3
  cluster_refused 78 "*server no-such-job-0.invalid, which has rank 0, has no address (*); write it into the table as \"host_ip\" next to server_id*" \
    data hccl.json 4 2
  named_table 127.0.0.256 no-such-job-1.invalid=127.0.0.3
  cluster_refused 78 "*server 127.0.0.256, which has rank 0, has no address: it looks like a mistyped IP address; correct it" data hccl.json 4 2
}

# ---- hostfiles that cannot be ----------------------------------------------------------------------

@test "hostfiles: slots=0, IPv6, half a set, a host twice, none, different slots, no slots" {
  need mpirun
  local -A bad=(
    ['127.0.0.2 slots=0']="*hosts:1: slots=0: a host without slots runs nothing*"
    ['::1 slots=2']="*hosts:1: ::1 is an IPv6 address*"
    ['127.0.0.[2-']="*hosts:1: 127.0.0.[2-: unbalanced brackets*"
    [$'127.0.0.2 slots=2\n127.0.0.2 slots=2']="*hosts:2: 127.0.0.2 is in line 1 too*"
    [$'# none\n\n']="*hosts: there is no host in it*"
    [$'127.0.0.2 slots=2\n127.0.0.3 slots=4']="*different numbers of slots (2, 4)*"
    ['127.0.0.2']="*127.0.0.2 has no slots=N; write how many devices it has: 127.0.0.2 slots=8, or give --devices "*
  )
  local text
  local -i number=0
  for text in "${!bad[@]}"; do
    mkdir "$((number += 1))"
    printf '%s\n' "$text" >"$number/hosts"
    refuses 78 "${bad[$text]}" --hostfile "$number/hosts" data
  done
  refuses 78 "*--hostfile nowhere cannot be read*" --hostfile nowhere data
  all_refused
}

@test "a host that no one knows, and a table of other hosts" {
  need mpirun
  table 127.0.0.2 127.0.0.3
  printf 'no-such-host.invalid slots=2\n127.0.0.3 slots=2\n' >hosts
  cluster_refused 78 "*--hostfile: no-such-host.invalid has no address*" --hostfile hosts --rank_table hccl.json data
  printf '127.0.0.2 slots=2\n' >hosts
  cluster_refused 78 "*server 127.0.0.3 of the rank table is not in the hostfile; add it: 127.0.0.3 slots=2" \
    --hostfile hosts --rank_table hccl.json data
}

@test "without mpirun the hosts cannot be reached from here" {
  local name
  mkdir programs
  for name in bash readlink python; do ln -s "$(command -v "$name")" programs; done
  printf '127.0.0.2 slots=2\n' >hosts
  refused 78 "*mpirun is not on PATH; install Open MPI*" \
    env PATH="$PWD/programs" bash "$SCRIPTS/run_cluster.sh" --device_target CPU \
    --config config.yaml --train_script "$FIXTURES/stub_trainer.py" --hostfile hosts data
}

# ---- on the lab's hosts ----------------------------------------------------------------------------

@test "lab: one command builds the table and starts the ranks of all hosts; comments and blank lines are no hosts" {
  need mpirun
  lab_up 2
  printf '# the lab\n\nnode0 slots=2 # here\n10.77.0.2   slots = 2\n' >hosts
  cluster_on 0 --hostfile hosts data
  [[ "$(ls "$STUB_OUT")" = $'rank_0.json\nrank_1.json\nrank_2.json\nrank_3.json\nscheduler.json' ]]
  [[ "$(recorded rank_3 '[r["env"][n] for n in ("RANK_ID", "DEVICE_ID", "RANK_SIZE", "MS_SCHED_HOST")]')" = "['3', '1', '4', '10.77.0.1']" ]]
  [[ "$(places LOCAL_RANK LOCAL_WORLD_SIZE SERVER_ID DEVICE_NUM)" = $'0 2 0 2\n1 2 0 2\n0 2 1 2\n1 2 1 2' ]]
  [[ "$(launch_json '[(s["rank"], s["device"], s["host"]) for s in r["ranks"]]')" = "[(0, 0, '10.77.0.1'), (1, 1, '10.77.0.1'), (2, 0, '10.77.0.2'), (3, 1, '10.77.0.2')]" ]]
  [[ "$(launch_json 'r["outcome"]["members"]["3"]["status"]')" = 0 ]]
}

@test "lab: ranks are on the servers that the table has for them, whichever server the command is typed on" {
  lab_of_two 2
  printf 'import os, socket\nprint(os.environ["RANK_ID"], socket.gethostname(), os.environ["LOCAL_RANK"])\n' >place.py
  for host in 0 1; do
    cluster_on "$host" --train_script place.py --hostfile hosts data
    [[ "$(cat logs/latest/rank_?.log)" = $'0 node0 0\n1 node0 1\n2 node1 0\n3 node1 1' ]] || fail "$(cat logs/latest/rank_?.log)"
  done
}

@test "lab: a hostfile, and a table whose servers have names, and their addresses in host_ip" {
  lab_of_two 2
  named_table "node_0=10.77.0.1" "node_1=10.77.0.2"
  cluster_on 0 --hostfile hosts --rank_table hccl.json data
  [[ "$(ls "$STUB_OUT")" = $'rank_0.json\nrank_1.json\nrank_2.json\nrank_3.json\nscheduler.json' ]]
  [[ "$(launch_json '[rank["host"] for rank in r["ranks"]]')" = "['10.77.0.1', '10.77.0.1', '10.77.0.2', '10.77.0.2']" ]]
  legacy_table 10.77.0.1 10.77.0.2
  run --separate-stderr cluster_on 0 --hostfile hosts --rank_table jobstart_hccl.json data
  [[ $status -eq 0 && $stderr == *"jobstart_hccl.json is of a legacy format; written as version 1.0 to "*"/hccl_of_legacy.json"* ]]
  [[ "$(recorded rank_3 'json.load(open(r["env"]["RANK_TABLE_FILE"]))["version"]')" = 1.0 ]]
  named_table "node_0=10.77.0.1" "node_1=10.77.0.1"
  run --separate-stderr cluster_on 0 --hostfile hosts --rank_table hccl.json data
  [[ $status -eq 78 && $stderr == *"the servers node_0 (10.77.0.1) and node_1 (10.77.0.1) of the rank table are one host; "* ]]
}

@test "lab: the plan of all hosts is printed and nothing is started or written" {
  lab_of_two 2
  run --separate-stderr cluster_on 0 --dry_run --hostfile hosts data
  [[ "$status" -eq 0 && $output == *"/hccl_tools.py --hostfile hosts --devices="*" --output "* ]] || fail "$output"
  [[ $output == *"mpirun"*" -H 10.77.0.1:2,10.77.0.2:2 "* ]]
  table 10.77.0.1 10.77.0.2
  run --separate-stderr cluster_on 0 --dry_run --hostfile hosts --rank_table hccl.json data
  [[ "$status" -eq 0 && $output == *$'\ncp hccl.json '* ]] || fail "$output"
  [[ ! -e logs && -z "$(ls "$STUB_OUT")" ]]
}

@test "lab: a host that shares no folder for logs gets the table all the same" {
  lab_of_two 2
  mkdir logs
  "$LAB_SH" root 1 mount -t tmpfs tmpfs "$WORLD/logs"
  cluster_on 0 --hostfile hosts data
  cmp "$(recorded rank_3 'r["env"]["RANK_TABLE_FILE"]')" <(on 1 cat "$(recorded rank_3 'r["env"]["RANK_TABLE_FILE"]')")
}

@test "lab: a rank that fails on the far host ends all, with its code and its host" {
  lab_of_two 2
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: await 0 1 2, exit 7'
  run --separate-stderr cluster_on 0 --hostfile hosts data
  [[ "$status" -eq 7 ]]
  [[ $stderr == *"rank 3 (device 1 of 10.77.0.2) exited with code 7"* && $stderr == *"rank 3 gives up"* ]]
  [[ $stderr == *$'\nrank  device  host            exit '*$'\n3     1       10.77.0.2       7, failed first '* ]]
  [[ "$(launch_json 'r["outcome"]["first_failure"]')" = 3 ]]
  eventually nobody_trains
}

@test "lab: the far host vanishes in the middle: the job ends by itself" {
  lab_of_two 1
  export STUB_DO='0: wait; 1: wait'
  (
    cluster_on 0 --hostfile hosts data >stdout 2>stderr 3>&- &
    eventually ranks_up 0 1
    "$LAB_SH" link 1 down
    status=0
    wait "$!" || status=$?
    printf '%d\n' "$status" >status
  )
  # by itself: not by the two minutes that `on` gives it
  [[ "$(<status)" != @(0|124|137) ]] || fail "$(<status)" "$(<stderr)"
  grep -F ': the host 10.77.0.2 (rank 1) is lost after ' stderr
  eventually nobody_trains
}

@test "lab: a host that wants a password is named, with the command that sets ssh up" {
  lab_of_two 2
  : >"$LAB/host1/authorized_keys"
  ends 78 '*10.77.0.2*Permission denied*ssh-copy-id HOST*' cluster_on 0 --hostfile hosts data
  [[ ! -e logs ]]
}

@test "lab: typed on each host, with RANK_START of the other" {
  lab_up 2
  table 10.77.0.1 10.77.0.2
  refused 78 "*RANK_START 0 is the first rank of 10.77.0.1; this host is a different server: 10.77.0.2 has ranks 2 to 3; type 2 here" \
    cluster_on 1 data hccl.json 4 0
}

@test "lab: --straggler and --metrics on both hosts: each compares the ranks of its host, and needs a file of its own" {
  lab_up 2
  table 10.77.0.1 10.77.0.2
  export STUB_DO='0: steps 400 20; 1: steps 200 40; 2: steps 400 20; 3: steps 400 20'
  cluster_on 1 --straggler 1.5 --metrics m.prom data hccl.json 4 2 2>stderr1 3>&- &
  ends 0 '*' cluster_on 0 --straggler 1.5 --metrics m.prom data hccl.json 4 0
  wait "$!" || fail "$(<stderr1)"
  [[ $stderr == *'slow: rank 1 (device 1 of node0) took '* && $(<stderr1) != *'slow: '* ]] || fail "$stderr$(<stderr1)"
  [[ $stderr$(<stderr1) == *'--metrics '*'m.prom: another launch writes to it, too; each needs its own'* ]] || fail "$stderr$(<stderr1)"
  cluster_on 1 --metrics m1.prom data hccl.json 4 2 3>&- &
  cluster_on 0 --metrics m0.prom data hccl.json 4 0
  wait "$!"
  grep -q '^mindspore_launch_rank_step{.*rank="0",host="node0".*} 400$' m0.prom || fail "$(<m0.prom)"
  grep -q '^mindspore_launch_rank_step{.*rank="3",host="node1".*} 400$' m1.prom || fail "$(<m1.prom)"
}

@test "lab: typed on both hosts at once, in a folder that they share: each run has a folder of its own" {
  lab_up 2
  table 10.77.0.1 10.77.0.2
  cluster_on 1 data hccl.json 4 2 3>&- &
  cluster_on 0 data hccl.json 4 0
  wait "$!"
  ranks_up 0 1 2 3
  runs=(logs/run_cluster-*)
  [[ ${#runs[@]} -eq 2 ]]
}

@test "lab: check_network.sh asks all hosts and names what is wrong with which device" {
  lab_of_two 2
  table 10.77.0.1 10.77.0.2
  on 0 bash "$SCRIPTS/check_network.sh" --hostfile hosts hccl.json
  printf 'DOWN\n' >"$LAB/host1/cards/link_1"
  run --separate-stderr on 0 bash "$SCRIPTS/check_network.sh" --hostfile hosts hccl.json
  [[ "$status" -eq 1 && $output == *"10.77.0.2 device 1 (rank 3): the link is DOWN"*"[EI0009]"* ]]
}

# typed_on HOST RANK_START: half of a job of four real ranks
typed_on() {
  timeout -k 5 300 "$LAB_SH" run "$1" bash "$SCRIPTS/run_cluster.sh" --log_dir "logs$1" --device_target CPU --import_once \
    --train_script "$FIXTURES/one_weight.py" --config no_eval.yaml digits hccl.json 4 "$2"
}

# bats test_tags=trains
@test "lab: real MindSpore: two hosts with a rank each compute what two of one host compute, bit for bit; four fit together" {
  need mpirun
  train_for_real
  lab_up 2
  hosts 1
  digits_in digits
  sed '/^eval:/,$d' "$PROJECT/configs/mnist/lenet5_digits.yaml" >no_eval.yaml
  settings=(-o scheduler.num_epochs=1 train.loader.batch_size=64)
  DATA_PATH=digits bash "$SCRIPTS/ascend2p.sh" --log_dir one --device_target CPU --import_once no_eval.yaml -- "${settings[@]}"
  on 0 timeout -k 5 300 bash "$SCRIPTS/run_cluster.sh" --log_dir two --device_target CPU --config no_eval.yaml \
    --hostfile hosts digits -- "${settings[@]}"
  cmp one/latest/ckpt/rank_0/lenet5-1_11.ckpt two/latest/ckpt/rank_0/lenet5-1_11.ckpt
  table 10.77.0.1 10.77.0.2
  typed_on 1 2 >stdout1 2>stderr1 3>&- &
  ends 0 '*' typed_on 0 0
  wait "$!" || fail "$(<stderr1)"
  fitted_alike 4 logs0/latest/rank_{0,1}.log logs1/latest/rank_{2,3}.log
}

@test "lab: a second network that does not connect the hosts is not in the way, and --network names the right one" {
  lab_of_two 1
  for host in 0 1; do # as Docker makes it: up on both hosts, with the same address
    "$LAB_SH" root "$host" sh -c 'ip link add docker0 type bridge && ip address add 172.17.0.1/16 dev docker0 && ip link set docker0 up'
    "$LAB_SH" root "$host" sh -c "ip link add ib0 type bridge && ip address add 192.168.$host.1/24 dev ib0 && ip link set ib0 up"
  done
  cluster_on 0 --network 10.77.0.0/24 --hostfile hosts data
  [[ "$(ls "$STUB_OUT")" = $'rank_0.json\nrank_1.json\nscheduler.json' ]]
  [[ "$(recorded rank_1 'r["env"]["MS_SCHED_HOST"]')" = 10.77.0.1 ]]
  cluster_on 0 --hostfile hosts data
}
