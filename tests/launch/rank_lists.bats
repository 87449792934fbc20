#!/usr/bin/env bats
# run_cluster.sh with tables of version 2.0, which list ranks and name no hosts.

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

# list_of_ranks HOSTS DEVICES: hccl.json of version 2.0, as for 950: so many hosts with so many devices each, which it does not name
list_of_ranks() {
  python - "$@" >hccl.json <<'PY'
import json, random, sys

hosts, devices = map(int, sys.argv[1:])
ranks = []
for n in range(hosts * devices):
    address = {"addr_type": "EID", "addr": f"{n:032x}", "ports": ["0/0"], "plane_id": "plane_0"}
    level = {"net_layer": 0, "net_instance_id": f"srv{n // devices}", "net_type": "TOPO_FILE_DESC", "net_attr": "",
             "rank_addr_list": [address]}
    ranks.append({"rank_id": n, "local_id": n % devices, "device_id": n % devices, "level_list": [level]})
table = {"version": "2.0", "status": "completed", "rank_count": len(ranks), "rank_list": ranks}
print(json.dumps(table) + "".join(random.choices(" \n", k=32)))
PY
}

@test "a table of version 2.0 names no hosts: --table_hosts says where its ranks are" {
  list_of_ranks 2 2
  printf '127.0.0.2 slots=2\n127.0.0.3 slots=2\n' >hosts
  cluster --table_hosts 127.0.0.2:2,127.0.0.3:2 data hccl.json 4 2
  [[ "$(ls "$STUB_OUT")" = $'rank_2.json\nrank_3.json' ]]
  cluster --table_hosts hosts data hccl.json 4 0
  [[ "$(ls "$STUB_OUT")" = $'rank_0.json\nrank_1.json\nrank_2.json\nrank_3.json\nscheduler.json' ]]
  [[ "$(recorded rank_3 '[r["env"][n] for n in ("RANK_ID", "DEVICE_ID", "RANK_SIZE", "MS_SCHED_HOST")]')" = "['3', '1', '4', '127.0.0.2']" ]]
  [[ "$(recorded rank_3 'r["env"]["MS_SCHED_PORT"]')" = "$(recorded rank_0 'r["env"]["MS_SCHED_PORT"]')" ]]
  cmp hccl.json "$(recorded rank_3 'r["env"]["RANK_TABLE_FILE"]')"
}

@test "where the ranks of version 2.0 are is never guessed" {
  list_of_ranks 2 2
  cluster_refused 78 "*hccl.json is of version 2.0, which does not say on which hosts its ranks are; name them in the order of the ranks: --table_hosts node1:8,node2:8, or a hostfile" \
    data hccl.json 4 2
  cluster_refused 78 "*--table_hosts: hccl.json has 4 ranks, the hosts have room for 3; *" --table_hosts 127.0.0.2:2,127.0.0.3:1 data hccl.json 4 2
  cluster_refused 78 "*--table_hosts: the number of ranks on 127.0.0.3 is missing; *" --table_hosts 127.0.0.2:2,127.0.0.3 data hccl.json 4 2
  cluster_refused 78 "*with hccl.json, host 127.0.0.2 would have ranks 0 to 2, and use device 0 twice; *" --table_hosts 127.0.0.2:3,127.0.0.3:1 data hccl.json 4 3
  cluster_refused 2 "*--table_hosts: *is neither a host's name*" --table_hosts '127.0.0.2:2,-oProxyCommand=x:2' data hccl.json 4 2
  table 127.0.0.2 127.0.0.3
  cluster_refused 2 "*hccl.json says on which hosts its ranks are; leave the option out" --table_hosts 127.0.0.2:2,127.0.0.3:2 data hccl.json 4 2
}

@test "lab: a hostfile, and a table of version 2.0, which names no hosts" {
  lab_of_two 2
  list_of_ranks 2 2
  cluster_on 0 --hostfile hosts --rank_table hccl.json data
  [[ "$(places RANK_ID DEVICE_ID SERVER_ID)" = $'0 0 0\n1 1 0\n2 0 1\n3 1 1' ]]
  cmp hccl.json "$(recorded rank_3 'r["env"]["RANK_TABLE_FILE"]')"
  hosts 1
  run --separate-stderr cluster_on 0 --hostfile hosts --rank_table hccl.json data
  [[ $status == 78 && $stderr == *"--hostfile: hccl.json has 4 ranks, the hosts have room for 2; "* ]] || fail "$stderr"
}

@test "lab: for 950 hosts the table is made of what each says of itself in /etc/hccl_rootinfo.json" {
  local host
  lab_of_two 2
  list_of_ranks 2 2
  for host in 0 1; do
    "$LAB_SH" root "$host" cp -a /etc "$WORLD/etc$host"
    python - "$host" >"etc$host/hccl_rootinfo.json" <<'PY'
import json, sys

table = json.load(open("hccl.json"))
host = int(sys.argv[1])
entries = [{key: value for key, value in rank.items() if key != "rank_id"} for rank in table["rank_list"][2 * host:2 * host + 2]]
print(json.dumps({"version": "2.0", "topo_file_path": "/x", "rank_count": 2, "rank_list": entries}))
PY
    "$LAB_SH" root "$host" mount --bind "$WORLD/etc$host" /etc
  done
  cluster_on 0 --generation 950 --hostfile hosts data
  [[ "$(places RANK_ID DEVICE_ID SERVER_ID)" = $'0 0 0\n1 1 0\n2 0 1\n3 1 1' ]]
  [[ "$(recorded rank_3 'json.load(open(r["env"]["RANK_TABLE_FILE"])) == json.load(open("hccl.json"))')" = True ]]
  rm etc1/hccl_rootinfo.json
  run --separate-stderr cluster_on 0 --generation 950 --hostfile hosts data
  [[ $status == 78 && $stderr == *"10.77.0.2: /etc/hccl_rootinfo.json cannot be read: "* ]] || fail "$stderr"
}
