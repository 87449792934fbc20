#!/usr/bin/env bats
# The links between hosts before a job: each fault of a lab's network is found, named, and nothing else is.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  setup_world
}

teardown() {
  lab_down
  end_left_over
}

# links N: what the judge says of N hosts that check their links at the same time, in `lines`.
links() {
  local -a hosts=()
  local host
  for ((host = 0; host < $1; host++)); do
    on "$host" "$PYTHON" "$FIXTURES/preflight_links.py" host "$PWD" "$host" "$1" &
    hosts+=("$!")
  done
  for host in "${hosts[@]}"; do wait "$host"; done
  run "$PYTHON" "$FIXTURES/preflight_links.py" judge "$PWD" "$1"
  [[ $status == 0 ]] || fail "$output"
}

# says LINE...: the judge says lines of these patterns and no others.
says() {
  local number=0 pattern
  [[ ${#lines[@]} == "$#" ]] || fail "expected $# lines: $output"
  for pattern in "$@"; do
    # shellcheck disable=SC2053 # it is a pattern
    [[ ${lines[number]} == $pattern ]] || fail "no $pattern: $output"
    number=$((number + 1))
  done
}

# as_root HOST COMMAND...: what only root of the host may do.
as_root() {
  timeout -k 5 120 "$LAB_SH" root "$@"
}

# rule HOST RULE...: a rule for packets that comes before the host's own addresses, so that it can drop what arrives.
rule() {
  as_root "$1" ip rule add pref 50 "${@:2}" || skip "this kernel has no rules for the packets of a port"
  as_root "$1" ip rule add pref 100 lookup local
  as_root "$1" ip rule del pref 0 lookup local
}

@test "of hosts whose links are good nothing is said" {
  lab_up 5
  links 5
  says
}

@test "a port that a host drops is named with the host, and a port that it does not let out with both" {
  lab_up 4
  rule 1 iif eth0 ipproto tcp dport 60000 blackhole
  rule 3 to 10.77.0.3 ipproto tcp dport 60015 prohibit
  links 4
  says 'blocks node1: no connection from other hosts succeeds at port 60000: nothing comes back: *' \
    'blocks node3: no connection to node2 succeeds at port 60015; those from there succeed: the sender*firewall*'
}

@test "a host without a cable is named alone, and the others say nothing of each other" {
  lab_up 4
  "$LAB_SH" link 2 down
  links 4
  says 'blocks node2: no connection from other hosts, or to them, succeeds at ports 22,8118,60000,60015: *'
}

@test "an MTU that the switch does not have: small messages pass, big ones do not" {
  lab_up 4
  local host
  for host in 0 1; do
    as_root "$host" ip link set eth0 mtu 9000 gso_max_segs 1
  done
  links 4
  says 'blocks node0: big messages to node1, or from there, do not arrive: *packets of 9000 bytes are lost*-s 8972 *'
}

@test "a host that uses another address than the listed one is named with it" {
  lab_up 3
  as_root 2 ip address add 10.77.0.99/24 dev eth0
  as_root 2 ip route change 10.77.0.0/24 dev eth0 src 10.77.0.99
  links 3
  says 'surprises node2: it reaches others by eth0, from 10.77.0.99, not 10.77.0.3; *'
}

@test "a port that a program of a host has is named with its process" {
  lab_up 3
  on 1 "$PYTHON" -c '
import signal, socket
door = socket.create_server(("0.0.0.0", 60000))
print("listens", flush=True)
signal.pause()' >door 3>&- &
  eventually grep -q listens door
  links 3
  says 'blocks node1: port 60000 cannot be used: on node1, process * listens there: *python*'
}
