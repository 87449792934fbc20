#!/usr/bin/env bats
# Hosts that reach one another by IPv6 only: on this machine by ::1, in the lab by addresses of fd77::/64.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  setup_world
  mkdir data
  HCCN=()
  PIDS=()
  export STUB_DO='' STUB_SCHEDULER_EXIT=0
}

# quick_msrun: the real msrun; its trainers are stubs
quick_msrun() {
  need_mindspore
  export PYTHONPATH=$FIXTURES/quick_msrun
}

teardown() {
  lab_down
  end_left_over
}

# lab_root HOST COMMAND...: as root of the host.
lab_root() {
  timeout -k 5 120 "$LAB_SH" root "$@"
}

# lab_of_ipv6: two hosts without IPv4 between them; host I is six-I, fd77::(I+1)
lab_of_ipv6() {
  [[ -e /proc/net/if_inet6 ]] || skip "this kernel has no IPv6"
  lab_up 2
  local host other
  # shellcheck disable=SC2016 # for the inner shell
  local -r names='
    echo "$2 six-$1" >>/etc/hosts
    sed -n "s/^node$1,[^ ]* /six-$1,$2 /p" "$0" >"$0.more"
    cat "$0.more" >>"$0"'
  for host in 0 1; do
    lab_root "$host" ip address flush dev eth0
    lab_root "$host" ip address add "fd77::$((host + 1))/64" dev eth0 nodad || skip "no IPv6 in the lab"
    for other in 0 1; do
      lab_root "$host" bash -c "$names" "$LAB/host$host/known_hosts" "$other" "fd77::$((other + 1))"
    done
  done
}

# typed HOST SCRIPT WORD...: the command of that host in the background, with logs and messages of its own
typed() {
  local -r host=$1
  stubbed "$2" --device_target CPU --log_dir "logs$host" "${@:3}"
  : >"stderr$host"
  timeout -k 5 120 "$LAB_SH" run "$host" "${STUBBED[@]}" >"stdout$host" 2>"stderr$host" 3>&- &
  PIDS[host]=$!
}

# both_end_well: the commands of both hosts have ended with 0
both_end_well() {
  local host
  for host in 0 1; do
    status=0
    wait "${PIDS[host]}" || status=$?
    [[ $status -eq 0 ]] || fail "host $host: $status: $(<stderr0)" "$(<stderr1)"
  done
}

# meets ADDRESS: each of the ranks has MindSpore's scheduler at this address
meets() {
  local rank
  for rank in 0 1 2 3; do
    [[ "$(recorded "rank_$rank" 'r["env"]["MS_SCHED_HOST"]')" = "$1" ]] || fail "$(recorded "rank_$rank" 'r["env"]')"
  done
}

@test "run_msrun.sh: --master_addr [::1], and a scheduler's port that is in use there" {
  quick_msrun
  STUB_DO='1: print 3' ends 0 '*' launch run_msrun.sh --worker_num 2 --master_addr '[::1]' config.yaml
  [[ "$(recorded rank_1 'r["env"]["MS_SCHED_HOST"] + " " + r["env"]["MASTER_ADDR"]')" = '::1 ::1' ]]
  rm -r logs train.log "${STUB_OUT:?}"/*
  python - <<'PY' >port &
import signal, socket
door = socket.create_server(("::1", 0), family=socket.AF_INET6)
print(door.getsockname()[1], flush=True)
signal.pause()
PY
  local -r server=$!
  eventually test -s port
  refused 78 "*--master_port $(<port): Address already in use: process $server listens there: *" \
    launch run_msrun.sh --worker_num 2 --master_addr ::1 --master_port "$(<port)" config.yaml
  kill "$server"
}

@test "an address of one link is refused" {
  ends 78 '*--master_addr fe80::1: fe80::1 is a link-local address; give an address that all hosts reach*' \
    launch run_msrun.sh --worker_num 2 --master_addr fe80::1 config.yaml
}

@test "lab: run_msrun.sh on two hosts, whose launchers meet by IPv6" {
  quick_msrun
  lab_of_ipv6
  typed 0 run_msrun.sh --worker_num 4 --local_worker_num 2 --node_rank 0 --master_addr fd77::1 --max_restarts 1 config.yaml
  typed 1 run_msrun.sh --worker_num 4 --local_worker_num 2 --node_rank 1 --master_addr six-0 --max_restarts 1 config.yaml
  both_end_well
  meets fd77::1
}

@test "lab: run_cluster.sh typed on both servers of a table with addresses of IPv6" {
  lab_of_ipv6
  python - >hccl.json <<'PY'
import json
servers = [
    {"server_id": f"fd77::{n + 1}", "device": [
        {"device_id": str(d), "device_ip": f"fd78::{n}:{d + 1}", "rank_id": str(2 * n + d)} for d in range(2)]}
    for n in range(2)
]
print(json.dumps({"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}))
PY
  typed 0 run_cluster.sh --config config.yaml --max_restarts 1 data hccl.json 4 0
  typed 1 run_cluster.sh --config config.yaml --max_restarts 1 data hccl.json 4 2
  both_end_well
  meets fd77::1
}

@test "lab: mpirun and names of hosts that have addresses of IPv6 only" {
  need mpirun
  lab_of_ipv6
  stubbed run_mpirun_1.sh --device_target CPU --config config.yaml six-0:2,six-1:2
  run --separate-stderr on 0 "${STUBBED[@]}"
  [[ $status -eq 0 ]] || fail "$status: $output $stderr"
  meets fd77::1
}

@test "lab: preflight.sh asks hosts of IPv6, measures their links, and names another MTU" {
  lab_of_ipv6
  run --separate-stderr on 0 bash "$SCRIPTS/preflight.sh" -H six-0,six-1
  [[ $status -eq 0 && $output == '2 hosts agree; nothing blocks' ]] || fail "$status: $output $stderr"
  lab_root 1 ip link set eth0 mtu 1400
  run --separate-stderr on 0 bash "$SCRIPTS/preflight.sh" -H six-0,six-1
  [[ $output == *'MTU 1400'* ]] || fail "$status: $output $stderr"
}

@test "lab: run_cluster.sh with a hostfile of hosts that have IPv6 only is refused: mpirun would get addresses" {
  need mpirun
  lab_of_ipv6
  printf 'six-%d slots=2\n' 0 1 >hosts
  stubbed run_cluster.sh --device_target CPU --config config.yaml --hostfile hosts data
  run --separate-stderr on 0 "${STUBBED[@]}"
  [[ $status -eq 78 && $stderr == *'--hostfile: six-0, six-1 have only IPv6 addresses, '*'type the command on each host'* ]] \
    || fail "$status: $output $stderr"
}
