#!/usr/bin/env bats
# The test hosts themselves: they are what they say, and they go without a trace.

# bats file_tags=thorough
load ../helper
load lab

teardown() {
  lab_down
}

# possible: skips the test where no lab can be.
possible() {
  lab_up 1
  lab_down
}

# traces LAB: what is left of a lab: its folder, processes that know its path.
traces() {
  [[ ! -e $1 ]] || printf '%s\n' "$1"
  # neither grep's arguments nor its environment may hold the path: it would find itself
  (unset LAB && grep -lszF -f <(printf '%s' "$1") /proc/[0-9]*/cmdline /proc/[0-9]*/environ) || true
}

gone_without_trace() {
  [[ -z "$(traces "$1")" ]]
}

@test "hosts have names, addresses, addresses of cards and an hccn_tool of their own" {
  lab_up 2
  [[ "$(on 0 hostname) $(on 1 hostname)" = "node0 node1" ]]
  [[ "$(on 1 cat /etc/hostname)" = node1 ]]
  [[ "$(on 1 hostname -I)" = "10.77.0.2 " ]]
  [[ "$(on 0 getent hosts node1)" = "10.77.0.2 "*node1 ]]
  [[ "$(on 1 head -n 1 /etc/hccn.conf)" = address_0=10.78.1.1 ]]
  [[ "$(on 1 hccn_tool -i 7 -ip -g)" = ipaddr:10.78.1.8* ]]
  [[ "$(on 0 hccn_tool -i 0 -ip -g)" = ipaddr:10.78.0.1* ]]
}

@test "a command runs in the folder where it was typed and its exit code comes back" {
  lab_up 1
  cd "$BATS_TEST_TMPDIR"
  [[ "$(on 0 pwd)" = "$PWD" ]]
  run on 0 bash -c 'exit 7'
  [[ "$status" -eq 7 ]]
}

@test "ssh goes from host to host without a password, and not where the key is refused" {
  lab_up 2
  [[ "$(on 0 ssh -n node1 hostname)" = node1 ]]
  [[ "$(on 1 ssh -n 10.77.0.1 hostname)" = node0 ]]
  [[ "$(on 0 ssh -n node1 hccn_tool -i 0 -ip -g)" = ipaddr:10.78.1.1* ]]
  : >"$LAB/host1/authorized_keys"
  run on 0 ssh -n node1 hostname
  [[ "$status" -eq 255 && $output == *"Permission denied"* ]]
}

@test "mpirun starts a process on every host" {
  local program
  need mpirun
  lab_up 3
  program=$(readlink -f "$(type -P mpirun)") # other hosts have a wheel's programs on no PATH
  run --separate-stderr on 0 env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
    mpirun --prefix "${program%/bin/*}" -H node0,node1,node2 hostname
  [[ "$status" -eq 0 && "$(sort <<<"$output")" = $'node0\nnode1\nnode2' ]] || fail "$status: $output" "$stderr"
}

@test "a cable that is pulled takes the host away until it is put back" {
  lab_up 2
  "$LAB_SH" link 1 down
  run ! on 0 ssh -n -o ConnectTimeout=1 node1 true
  "$LAB_SH" link 1 up
  eventually on 0 ssh -n -o ConnectTimeout=1 node1 true
}

@test "a host that is switched off is gone; the others stay" {
  lab_up 2
  "$LAB_SH" off 1
  run ! on 1 true
  run ! on 0 ssh -n -o ConnectTimeout=1 node1 true
  [[ "$(on 0 hostname)" = node0 ]]
}

@test "a folder can be taken away from one host" {
  lab_up 2
  mkdir "$BATS_TEST_TMPDIR/shared"
  "$LAB_SH" root 1 mount -t tmpfs tmpfs "$BATS_TEST_TMPDIR/shared"
  on 0 touch "$BATS_TEST_TMPDIR/shared/file"
  on 0 test -e "$BATS_TEST_TMPDIR/shared/file"
  run ! on 1 test -e "$BATS_TEST_TMPDIR/shared/file"
  run ! on 0 ssh -n node1 test -e "$BATS_TEST_TMPDIR/shared/file"
}

@test "several labs at once do not meet" {
  local first
  lab_up 1
  first=$LAB
  on 0 touch /run/first
  lab_up 1
  [[ "$LAB" != "$first" && "$(on 0 hostname -I)" = "10.77.0.1 " ]]
  run ! on 0 test -e /run/first
  lab_down
  LAB=$first
  on 0 test -e /run/first
}

@test "down leaves nothing: no process, no folder, no link, no mount" {
  need ip
  local lab mounts links
  mounts=$(</proc/self/mountinfo) links=$(ip -o link | wc -l)
  lab_up 2
  lab=$LAB
  on 0 ssh -n node1 'setsid nohup sleep 1234 >/dev/null 2>&1 </dev/null &'
  on 0 bash -c 'setsid nohup sleep 1234 >/dev/null 2>&1 </dev/null &'
  lab_down
  eventually gone_without_trace "$lab"
  [[ "$(</proc/self/mountinfo)" = "$mounts" && "$(ip -o link | wc -l)" = "$links" ]]
}

@test "a lab whose owner is killed goes as well" {
  local owner
  possible
  sleep 300 3>&- &
  owner=$!
  LAB=$("$LAB_SH" up 2 "$owner")
  on 0 true
  kill -KILL "$owner"
  eventually gone_without_trace "$LAB"
}

@test "a lab whose keeper is killed ends its hosts" {
  lab_up 1
  on 0 bash -c 'setsid nohup sleep 1234 >/dev/null 2>&1 </dev/null &'
  kill -KILL "$(<"$LAB/keeper")"
  no_host() { ! kill -0 "$(<"$LAB/host0/pid")" 2>/dev/null || gone "$(<"$LAB/host0/pid")"; }
  eventually no_host
}

@test "where namespaces are not allowed the reason is said and nothing stays" {
  need_root "to give up the right to make namespaces"
  possible
  export TMPDIR=$BATS_TEST_TMPDIR
  ends 1 'lab.sh: no lab: unshare: unshare failed: Operation not permitted' \
    setpriv --bounding-set=-sys_admin --inh-caps=-sys_admin "$LAB_SH" probe
  run ! compgen -G "$TMPDIR/lab.??????"
}

@test "what cannot be is refused in words" {
  ends 1 '*a number of hosts from 1 to 250*' "$LAB_SH" up 0
  ends 1 '*LAB= is no lab; make one*' env -u LAB "$LAB_SH" run 0 true
  lab_up 1
  ends 1 '*no host 5 in *' "$LAB_SH" run 5 true
  ends 1 '*usage: lab.sh up N*' "$LAB_SH"
}
