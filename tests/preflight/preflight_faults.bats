#!/usr/bin/env bats
# Some hosts, and on one of them one fault: it is found, named with its host, and nothing else is said.
#
# One lab for all tests.  Each test mends what it has broken, and the last one looks whether all did.  The hosts share one
# kernel: what another one would be is in test_facts.py.

# bats file_tags=thorough
load ../helper
load ../lab/lab

HOSTS=${PREFLIGHT_HOSTS:-4}

setup_file() {
  need ssh ip
  BATS_TEST_TMPDIR=$BATS_FILE_TMPDIR lab_up "$HOSTS"
}

teardown_file() {
  lab_down
}

setup() {
  setup_world
  unset PYTHONPATH
  UNDO=$BATS_TEST_TMPDIR/undo
  LOGINS=$BATS_TEST_TMPDIR/logins # what the shell of a host reads before its command, one file a host
  export LOGINS
  mkdir "$LOGINS" data other
  printf 'import numpy\nimport own\n' >train.py
  printf 'x = 1\n' >own.py
  printf 'x' >data/one
}

teardown() {
  local line
  if [[ -e $UNDO ]]; then
    tac "$UNDO" | while read -r line; do eval "$line"; done
  fi
  end_left_over
}

# as_root HOST COMMAND...: what only root of the host may do.
as_root() {
  timeout -k 5 120 "$LAB_SH" root "$@"
}

# undo COMMAND...: runs after the test, whatever becomes of it; the last one first.
undo() {
  printf '%q ' "$@" >>"$UNDO"
  printf '\n' >>"$UNDO"
}

# instead HOST FILE OTHER: the host has the file OTHER instead of FILE.
instead() {
  as_root "$1" mount --bind "$3" "$2"
  undo as_root "$1" umount "$2"
}

# small HOST FOLDER SIZE [OPTION]: the folder is a file system of its own on the host.
small() {
  as_root "$1" mount -t tmpfs -o "size=$3,mode=1777${4:+,$4}" tmpfs "$2"
  undo as_root "$1" umount "$2"
}

# over_logins: an ssh by which the shell of each host first reads its file in LOGINS, as it reads a .bashrc
over_logins() {
  cat >"$BATS_TEST_TMPDIR/ssh-of-logins" <<'SH'
#!/bin/bash
host=${*: -2:1}
[[ ! -e $LOGINS/$host ]] || set -- "${@:1:$#-1}" ". $LOGINS/$host; ${*: -1}"
exec ssh "$@"
SH
  chmod +x "$BATS_TEST_TMPDIR/ssh-of-logins"
  SSH=(--ssh "$BATS_TEST_TMPDIR/ssh-of-logins -oBatchMode=yes")
}

# finds STATUS PATTERN ARGUMENT...: the check ends so, and has one finding, which fits.  A busy machine may say that it waits.
finds() {
  run --separate-stderr on 0 bash "$SCRIPTS/preflight.sh" -H "node[0-$((HOSTS - 1))]" --train_script train.py --data data "${@:3}"
  local -r words=$(grep -v ': waiting for ' <<<"$stderr")
  [[ $status -eq $1 && -z $words ]] || fail "exit $status, not $1: $output $stderr"
  [[ $(grep -c '^  [^ ]' <<<"$output") -eq 1 ]] || fail "not one finding: $output"
  # shellcheck disable=SC2053 # a pattern is meant
  [[ $(grep '^  [^ ]' <<<"$output") == $2 ]] || fail "it says: $output"
}

# says_nothing ARGUMENT...: all hosts agree.
says_nothing() {
  run --separate-stderr on 0 bash "$SCRIPTS/preflight.sh" -H "node[0-$((HOSTS - 1))]" --train_script train.py --data data "$@"
  local -r words=$(grep -v ': waiting for ' <<<"$stderr")
  [[ $status -eq 0 && $output == "$HOSTS hosts agree; nothing blocks" && -z $words ]] || fail "$status: $output $stderr"
}

# metadata PACKAGE: the file that says which version is installed.
metadata() {
  python -c 'import sys; from importlib import metadata as m; print(m.distribution(sys.argv[1])._path / "METADATA")' "$1" 2>/dev/null
}

@test "faults: hosts without one are one line" {
  says_nothing
}

@test "faults: another version of a package" {
  metadata numpy >/dev/null || skip "needs NumPy"
  sed 's/^Version: .*/Version: 1.0.7/' "$(metadata numpy)" >other/METADATA
  instead 3 "$(metadata numpy)" "$PWD/other/METADATA"
  finds 1 "  node3: numpy 1.0.7; the other $((HOSTS - 1)) hosts: *"
}

@test "faults: another version of MindSpore" {
  metadata mindspore >/dev/null || skip "needs MindSpore"
  sed 's/^Version: .*/Version: 2.0.0/' "$(metadata mindspore)" >other/METADATA
  instead 3 "$(metadata mindspore)" "$PWD/other/METADATA"
  finds 78 "  node3: MindSpore 2.0.0; the other $((HOSTS - 1)) hosts: *"
}

@test "faults: a package that is not installed" {
  metadata numpy >/dev/null || skip "needs NumPy"
  local -r site=$(dirname "$(dirname "$(metadata numpy)")") over=/run/lab/site
  as_root 3 mkdir -p "$over/upper" "$over/work"
  local name
  for name in numpy "$(basename "$(dirname "$(metadata numpy)")")"; do
    as_root 3 mknod "$over/upper/$name" c 0 0 || skip "needs root: only root can hide a folder of an overlay"
  done
  as_root 3 mount -t overlay -o "lowerdir=$site,upperdir=$over/upper,workdir=$over/work" overlay "$site"
  undo as_root 3 umount "$site"
  finds 78 "  node3: no numpy; the other $((HOSTS - 1)) hosts: *"
}

@test "faults: another file of the program" {
  printf 'x = 2\n' >other/own.py
  instead 3 "$PWD/own.py" "$PWD/other/own.py"
  finds 78 "  node3: own.py has sha256 *; the other $((HOSTS - 1)) hosts: *"
}

@test "faults: another rank table" {
  local -a servers=()
  local host
  for ((host = 1; host <= HOSTS; host++)); do servers+=("10.77.0.$host"); done
  server_table "${servers[@]}"
  { cat hccl.json && printf ' '; } >other/hccl.json
  instead 2 "$PWD/hccl.json" "$PWD/other/hccl.json"
  finds 78 "  node2: the rank table has sha256 *; the other $((HOSTS - 1)) hosts: *" hccl.json
}

@test "faults: data that are not there" {
  small 1 "$PWD/data" 1m
  finds 1 "  node1: 0 files in the folder of the data; the other $((HOSTS - 1)) hosts: 1"
}

@test "faults: a full log folder" {
  local host
  mkdir logs
  for ((host = 0; host < HOSTS; host++)); do small "$host" "$PWD/logs" 2g; done
  as_root 2 fallocate -l 2040m "$PWD/logs/full"
  finds 78 "  node2: * free for the log folder; at least 16.0 MiB is needed"
}

@test "faults: a log folder without inodes" {
  local host
  mkdir logs
  for ((host = 0; host < HOSTS; host++)); do small "$host" "$PWD/logs" 2g "$([[ $host -ne 3 ]] || echo nr_inodes=20)"; done
  finds 78 "  node3: * inodes free for the log folder; at least 100 is needed"
}

@test "faults: a small /dev/shm" {
  small 1 /dev/shm 8m
  finds 78 "  node1: 8.0 MiB free in /dev/shm; at least 16.0 MiB is needed"
}

@test "faults: a low limit of open files" {
  over_logins
  printf 'ulimit -n 256\n' >"$LOGINS/node3"
  finds 1 "  node3: *256*" "${SSH[@]}"
}

@test "faults: a variable that one host adds, which is a secret" {
  over_logins
  printf 'export MS_ACCESS_TOKEN=hunter2-hunter2\n' >"$LOGINS/node1"
  finds 1 "  node1: MS_ACCESS_TOKEN=<????????>; the other $((HOSTS - 1)) hosts: MS_ACCESS_TOKEN is not set" "${SSH[@]}" --output page.html
  [[ $output != *hunter2* ]]
  grep -q node1 page.html
  run ! grep hunter2 page.html
}

@test "faults: another time zone" {
  [[ -e /usr/share/zoneinfo/Asia/Tokyo && -e /etc/localtime ]] || skip "needs time zones"
  instead 2 "$(readlink -f /etc/localtime)" /usr/share/zoneinfo/Asia/Tokyo
  finds 1 "  node2: *+0900*; the other $((HOSTS - 1)) hosts: *"
}

@test "faults: a clock that is seven minutes ahead" {
  need cc
  over_logins
  cat >clock.c <<'C'
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
/* Namespaces share this clock, so the programs of the host get another answer. */
int clock_gettime(clockid_t clock, struct timespec *now) {
  long failed = syscall(SYS_clock_gettime, clock, now);
  if (!failed && clock == CLOCK_REALTIME) now->tv_sec += 420;
  return failed;
}
C
  cc -shared -fPIC -o "$LAB/clock.so" clock.c # a path with a blank would be two for the loader
  printf 'export LD_PRELOAD=%q\n' "$LAB/clock.so" >"$LOGINS/node1"
  finds 1 "  node1: the clock is 4[12]?.??? s ahead of most hosts *Kerberos*" "${SSH[@]}"
}

@test "faults: fewer processors" {
  need taskset
  ((HOSTS > 1 && $(nproc) > 1)) || skip "needs two processors"
  local -r all=$(taskset -pc $$ | sed 's/.*: //')
  as_root 3 bash -c 'taskset -pc "$1" "$(</run/sshd.pid)"' - "${all%%[,-]*}"
  undo as_root 3 bash -c "taskset -pc $all \$(</run/sshd.pid)"
  finds 1 "  node3: 1 processor; the other $((HOSTS - 1)) hosts: *"
}

@test "faults: an MTU" {
  as_root 3 ip link set eth0 mtu 1400
  undo as_root 3 ip link set eth0 mtu 1500
  finds 1 "  node3: MTU 1400; the other $((HOSTS - 1)) hosts: 1500"
}

@test "faults: a port that a host drops" {
  as_root 3 ip rule add pref 50 iif eth0 ipproto tcp dport 60000 blackhole || skip "this kernel has no rules for ports"
  undo as_root 3 ip rule del pref 50
  as_root 3 ip rule add pref 100 lookup local
  undo as_root 3 ip rule del pref 100
  as_root 3 ip rule del pref 0 lookup local
  undo as_root 3 ip rule add pref 0 lookup local
  finds 78 "  node3: no connection from other hosts succeeds at port 60000: nothing comes back*"
}

@test "faults: a port that a program has" {
  on 3 python -c 'import signal, socket; s = socket.create_server(("", 60015)); print("up", flush=True); signal.pause()' >up 3>&- &
  undo kill "$!"
  eventually grep -q up up
  finds 78 "  node3: *60015*"
}

@test "faults: a slow link" {
  need tc
  as_root 2 tc qdisc add dev eth0 root tbf rate 20mbit burst 32k latency 2s || skip "this kernel limits no link"
  undo as_root 2 tc qdisc del dev eth0 root
  finds 1 "  node2: * MB/s, on most links * MB/s"
}

@test "faults: a link that is hardly one, on which connections wait for one another" {
  need tc
  as_root 2 tc qdisc add dev eth0 root tbf rate 1mbit burst 32k latency 2s || skip "this kernel limits no link"
  undo as_root 2 tc qdisc del dev eth0 root
  finds 1 "  node2: what goes to other hosts, and comes from there, is slow: 256 KiB take longer than 1 s"
}

# npus FILE TEXT: every host has two simulated NPUs; for npu-smi of node3 the file of its description has the text.
npus() {
  local host
  over_logins
  mkdir sim bin
  ln -s "$FIXTURES/bin/npu-smi" bin/npu-smi
  printf '2\n' >sim/devices
  cp -r sim other/sim
  [[ $# -eq 0 ]] || printf '%s\n' "$2" >"other/sim/$1"
  for ((host = 0; host < HOSTS; host++)); do
    printf 'export PATH=%q:$PATH NPU_SIM=%q\n' "$PWD/bin" "$PWD/$([[ $host -ne 3 ]] || echo other/)sim" >"$LOGINS/node$host"
  done
  export PATH=$PWD/bin:$PATH NPU_SIM=$PWD/sim
}

# card FILE TEXT: for hccn_tool of node3 the file of its cards' description has the text.
card() {
  printf '%s\n' "$2" >"$LAB/host3/cards/$1"
  undo rm "$LAB/host3/cards/$1"
}

@test "faults: NPUs that are alike are nothing to say" {
  npus
  says_nothing "${SSH[@]}"
}

@test "faults: a process of an earlier job on a device" {
  npus held_1 '4711 310 python'
  finds 78 "  node3: NPUs that a process holds: 1: *4711*" "${SSH[@]}"
}

@test "faults: an NPU that is not well" {
  npus health_0 Alarm
  finds 78 "  node3: NPUs that are not healthy: 0: Alarm" "${SSH[@]}"
}

@test "faults: an NPU less" {
  npus devices 1
  finds 1 "  node3: NPUs 0; the other $((HOSTS - 1)) hosts: 0,1" "${SSH[@]}"
}

@test "faults: an NPU whose link is down" {
  npus
  card link_1 DOWN
  finds 78 "  node3: NPUs whose network link is down: 1" "${SSH[@]}"
}

@test "faults: TLS on one side only" {
  npus
  local -r cards=$LAB/host3/cards/hccn.conf
  cp "$cards" other/hccn.conf
  undo cp "$PWD/other/hccn.conf" "$cards"
  printf 'tls_enable_%d=1\n' 0 1 >>"$cards"
  finds 78 "  node3: TLS switch 1 of the NPUs; the other $((HOSTS - 1)) hosts: 0" "${SSH[@]}"
}

@test "faults: a host whose sshd says nothing" {
  as_root 3 bash -c 'kill -STOP "$(</run/sshd.pid)"'
  undo as_root 3 bash -c 'kill -CONT "$(</run/sshd.pid)"'
  finds 78 "  node3: no answer; *"
}

@test "faults: a host without a cable" {
  "$LAB_SH" link 3 down
  undo "$LAB_SH" link 3 up
  finds 78 "  node3: no answer; *"
}

@test "faults: all of them are gone afterwards" {
  says_nothing
}
