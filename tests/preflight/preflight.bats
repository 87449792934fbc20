#!/usr/bin/env bats
# preflight.sh over hosts of the lab: one fault on one host, and nothing else is said.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  need ssh
  setup_world
  unset PYTHONPATH
  HERE=$WORLD
  cd "$HERE" || return
  printf 'import helper\n' >train.py
  printf 'x = 1\n' >helper.py
}

teardown() {
  lab_down
  end_left_over
}

# check N ARGUMENT...: preflight.sh on host 0 for the first N hosts.
check() {
  on 0 bash "$SCRIPTS/preflight.sh" -H "node[0-$(($1 - 1))]" "${@:2}"
}

# says STATUS N LINES ARGUMENT...: it ends so, its findings are these lines, without what to do, and stderr is empty.
says() {
  run --separate-stderr check "$2" "${@:4}"
  [[ $status -eq $1 && -z $stderr ]] || fail "$status: $output $stderr"
  [[ $(grep '^  [^ ]' <<<"$output") == "$3" ]] || fail "$output"
}

@test "preflight: hosts that are alike are one line, whatever is usual on each" {
  lab_up 4
  run --separate-stderr check 4 --train_script train.py --data .
  [[ $status -eq 0 && $output == '4 hosts agree; nothing blocks' && -z $stderr ]] || fail "$output $stderr"
}

@test "preflight: a full log folder, a small /dev/shm, an MTU and another program are each named with their host" {
  lab_up 4
  mkdir logs other
  cp train.py other
  printf 'x = 2\n' >other/helper.py
  lab_root 1 mount -t tmpfs -o size=8m tmpfs "$HERE/logs"
  lab_root 2 mount -t tmpfs -o size=8m tmpfs /dev/shm
  lab_root 2 ip link set eth0 mtu 1400
  lab_root 3 mount --bind "$HERE/other/helper.py" "$HERE/helper.py"
  local -r shown="  node3: helper.py has sha256 $(sha256sum other/helper.py | cut -c -12); the other 3 hosts: $(sha256sum helper.py | cut -c -12)"
  says 78 4 "$shown
  node2: 8.0 MiB free in /dev/shm; at least 16.0 MiB is needed
  node1: 8.0 MiB free for the log folder; at least 16.0 MiB is needed
  node2: MTU 1400; the other 3 hosts: 1500
  node1: the log folder is on another file system than that of most hosts" --train_script train.py
}

# lab_root HOST COMMAND...: as root of the host.
lab_root() {
  timeout -k 5 120 "$LAB_SH" root "$@"
}

@test "preflight: a host that is off is named with the reason, and the others are compared all the same" {
  lab_up 3
  "$LAB_SH" off 2
  lab_root 1 mount -t tmpfs -o size=8m tmpfs /dev/shm
  run --separate-stderr check 3
  [[ $status -eq 78 && $output == *'node2: no answer; '* && $output == *'node1: 8.0 MiB free in /dev/shm'* ]] || fail "$output"
}

@test "preflight: a port that a host drops is named with it, and a port that a program has is named once" {
  lab_up 4
  lab_root 1 ip rule add pref 50 iif eth0 ipproto tcp dport 60000 blackhole || skip "this kernel has no rules for ports"
  lab_root 1 ip rule add pref 100 lookup local
  lab_root 1 ip rule del pref 0 lookup local
  on 3 python -c 'import signal, socket; s = socket.create_server(("", 60015)); print("up", flush=True); signal.pause()' >up 3>&- &
  eventually grep -q up up
  run --separate-stderr check 4
  [[ $status -eq 78 && $(grep -c '^  [^ ]' <<<"$output") -eq 2 ]] || fail "$output"
  [[ $output == *'  node1: no connection from other hosts succeeds at port 60000: nothing comes back'* ]] || fail "$output"
  [[ $(grep -c '^  node3: .*60015' <<<"$output") -eq 1 ]] || fail "$output"
}

@test "preflight: another rank table on one host stops the job, and the table alone names the hosts" {
  lab_up 3
  server_table 10.77.0.1 10.77.0.2 10.77.0.3
  cp hccl.json other.json
  printf ' ' >>other.json
  lab_root 2 mount --bind "$HERE/other.json" "$HERE/hccl.json"
  run --separate-stderr on 0 bash "$SCRIPTS/preflight.sh" hccl.json
  [[ $status -eq 78 && $(grep -c '^  [^ ]' <<<"$output") -eq 1 ]] || fail "$output"
  [[ $output == *"10.77.0.3: the rank table has sha256 "*"; the other 2 hosts: "* ]] || fail "$output"
}

@test "preflight: a variable that only one host adds is named, and a secret never printed" {
  lab_up 3
  printf 'export HCCL_BUFFSIZE=300 MS_ACCESS_TOKEN=hunter2-hunter2\n' >"$BATS_TEST_TMPDIR/rc"
  says 0 3 ''
  cat >"$BATS_TEST_TMPDIR/ssh-with-rc" <<'SH'
#!/bin/bash
host=${*: -2:1}
[[ $host != node1 ]] || set -- "${@:1:$#-1}" ". $RC; ${*: -1}"
exec ssh "$@"
SH
  chmod +x "$BATS_TEST_TMPDIR/ssh-with-rc"
  export RC=$BATS_TEST_TMPDIR/rc
  run --separate-stderr check 3 --ssh "$BATS_TEST_TMPDIR/ssh-with-rc -oBatchMode=yes"
  [[ $status -eq 1 && $output == *'node1: HCCL_BUFFSIZE=300, MS_ACCESS_TOKEN=<'*'; the other 2 hosts: HCCL_BUFFSIZE is not set'* ]] || fail "$output $stderr"
  [[ $output != *hunter2* ]]
}

@test "preflight: mslaunch check is the same command, and nothing is left on the hosts" {
  lab_up 2
  run --separate-stderr on 0 env PYTHONPATH="$PROJECT" "$PYTHON" -m mindspore_launch check -H node0,node1 --json
  [[ $status -eq 0 && $(python -c 'import json, sys; print(json.load(sys.stdin)["verdict"])' <<<"$output") == good ]] || fail "$output $stderr"
  [[ -z "$(left_over | xargs -r grep -lszF probe.py 2>/dev/null)" ]]
}
