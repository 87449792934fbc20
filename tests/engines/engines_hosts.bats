#!/usr/bin/env bats
# Ranks on several hosts: real mpirun over real ssh, in the lab; what a person would get wrong.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  need mpirun ssh
  setup_world
  HCCN=()
}

teardown() {
  lab_down
  end_left_over
}

# launch_on_hosts SCRIPT ARGUMENT...: from host 0, ranks of the stub trainer.
launch_on_hosts() {
  local -r script=$1
  shift
  on 0 bash "$SCRIPTS/$script" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" --config config.yaml "$@"
}

# launch_on_hosts_behind N ARGUMENT...: the same with run_mpirun_1.sh in the background, until its N ranks run.
launch_on_hosts_behind() {
  set -m
  launch_on_hosts run_mpirun_1.sh "${@:2}" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- &
  LAUNCHER=$!
  set +m
  # shellcheck disable=SC2046 # a list of numbers
  eventually ranks_up $(seq 0 $(($1 - 1)))
}

# The lab's own processes have the test's mark, too.
no_rank_left() {
  [[ -z "$(left_over | xargs -r grep -lszF RANK_ID= 2>/dev/null)" ]]
}

# refused_lines STATUS PATTERN...: one line each.
refused_lines() {
  [[ $status -eq $1 ]] || fail "$status: $stderr"
  shift
  [[ ${#stderr_lines[@]} -eq $# ]] || fail "$stderr"
  local i
  for ((i = 0; i < $#; i++)); do
    # shellcheck disable=SC2053 # a pattern is meant
    [[ ${stderr_lines[i]} == "run_mpirun_1.sh: "${*:i+1:1} ]] || fail "${stderr_lines[i]}"
  done
  [[ -z "$(ls "$STUB_OUT")" ]]
}

@test "two hosts of two ranks: each has its place, the user's variables, and a line in the report" {
  lab_up 2
  MY_OWN='a b' ends 0 '*' launch_on_hosts run_mpirun_1.sh node0:2,node1:2
  ranks_up 0 1 2 3
  for rank in 0 1 2 3; do
    [[ "$(recorded "rank_$rank" 'r["env"]["RANK_ID"], r["env"]["DEVICE_ID"], r["env"]["RANK_SIZE"], r["env"]["MS_SCHED_HOST"]')" = "('$rank', '$((rank % 2))', '4', '10.77.0.1')" ]]
    [[ "$(recorded "rank_$rank" 'r["env"]["MY_OWN"], r["cwd"]')" = "('a b', \"$WORLD\")" ]]
    [[ -e logs/latest/rank_$rank.log ]]
  done
  launch_json_fits
  [[ "$(launch_json 'r["ranks"][3]["host"], r["ranks"][3]["device"]')" = "('node1', 1)" ]]
}

# begins_here: whether this Open MPI begins with the host where the command is typed; 5 keeps the order.
begins_here() {
  [[ $(mpirun --version) == *') 4.'* ]]
}

@test "a set of hosts, and so many ranks of each: the same places" {
  lab_up 2
  ends 0 '*' launch_on_hosts run_mpirun_1.sh 'node[0-1]' -npernode 2
  ranks_up 0 1 2 3
  [[ "$(places RANK_ID DEVICE_ID RANK_SIZE SERVER_ID)" = $'0 0 4 0\n1 1 4 0\n2 0 4 1\n3 1 4 1' ]]
  rm "$STUB_OUT"/*
  printf 'node[0,1]\r\n' >hosts
  ends 0 '*note: the hostfile has no slots=N: each of 2 hosts gets 1 rank*' launch_on_hosts run_mpirun_2.sh -np 2 hosts
  [[ "$(places RANK_ID DEVICE_ID RANK_SIZE SERVER_ID)" = $'0 0 2 0\n1 0 2 1' ]]
}

@test "hosts of different sizes: each rank knows its host, and how many ranks are on it" {
  lab_up 3
  printf 'node1 slots=1\nnode0 slots=2\nnode2 slots=3\n' >hosts
  printf 'import os, socket\nprint(socket.gethostname(), *(os.environ[n] for n in (%s)))\n' \
    '"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "SERVER_ID", "DEVICE_NUM"' >place.py
  for where in 'run_mpirun_1.sh node1:1,node0:2,node2:3' 'run_mpirun_2.sh hosts'; do
    # shellcheck disable=SC2086 # several words
    ends 0 '*' launch_on_hosts $where -n 5 --train_script place.py
    if begins_here; then
      [[ "$(cat logs/latest/rank_?.log)" = "\
node0 0 0 5 2 0 2
node0 1 1 5 2 0 2
node1 2 0 5 1 1 1
node2 3 0 5 2 2 2
node2 4 1 5 2 2 2" ]] || fail "$(cat logs/latest/rank_?.log)"
    else
      [[ "$(cat logs/latest/rank_?.log)" = "\
node1 0 0 5 1 0 1
node0 1 0 5 2 1 2
node0 2 1 5 2 1 2
node2 3 0 5 2 2 2
node2 4 1 5 2 2 2" ]] || fail "$(cat logs/latest/rank_?.log)"
    fi
    [[ "$(launch_json '" ".join(s["host"] for s in r["ranks"])')" = "$(cut -d ' ' -f 1 logs/latest/rank_?.log | xargs)" ]]
  done
}

@test "a DEVICE_NUM of the user reaches the ranks of all hosts" {
  lab_up 2
  DEVICE_NUM=4 ends 0 '*' launch_on_hosts run_mpirun_1.sh node0:1,node1:1
  [[ "$(places DEVICE_NUM LOCAL_WORLD_SIZE)" = $'4 1\n4 1' ]]
}

@test "where no scheduler runs, MASTER_ADDR is the host of rank 0" {
  local hosts first
  lab_up 2
  for hosts in node0:1,node1:1 node1:1,node0:1 node1:2; do
    first=${hosts:4:1}
    [[ $hosts != *node0* ]] || ! begins_here || first=0
    ends 0 '*' launch_on_hosts run_mpirun_1.sh --device_target GPU --no_check --dry_run "$hosts"
    [[ $output == *" MASTER_ADDR=10.77.0.$((first + 1)) MASTER_PORT="* ]] || fail "$output"
  done
}

@test "a hostfile, with comments, blank lines and blanks around =" {
  lab_up 2
  printf '# the hosts\n\nnode0 slots = 1 # here\n10.77.0.2   slots=2\n\n' >hosts
  ends 0 '*' launch_on_hosts run_mpirun_2.sh hosts
  [[ "$(recorded rank_2 'r["env"]["DEVICE_ID"]')" = 1 ]]
}

# elsewhere: this project in a folder `one`, which host 1 does not have: there it is installed, as pip does it.
elsewhere() {
  local parts=(configs hccl_tools schemas scripts tools)
  lab_up 2
  mkdir -p one site/mindspore_launch
  cp -r "${parts[@]/#/$PROJECT/}" "$PROJECT/mindspore_launch" one
  cp -r "${parts[@]/#/$PROJECT/}" "$PROJECT"/mindspore_launch/*.py site/mindspore_launch
  "$LAB_SH" root 1 mount -t tmpfs tmpfs "$WORLD/one"
  SCRIPTS=$WORLD/one/scripts
  export PYTHONPATH=$PYTHONPATH:$WORLD/site
}

@test "a host has this project in another folder: its ranks run, and all is told as ever" {
  elsewhere
  STUB_DO='0: wait; 1: children; 2: await 0 1 3, exit 7; 3: children' ends 7 '*rank 2 (device 0 of node1) exited with code 7*    rank 2 gives up*' \
    launch_on_hosts run_mpirun_1.sh node0:2,node1:2
  eventually no_rank_left
  [[ "$(launch_json 'r["version"]')" = "$(sed -n 's/__version__ = "\(.*\)"/\1/p' "$PROJECT/mindspore_launch/__init__.py")" ]]
}

@test "a host has this project in another folder: it is asked for its part of the table, and gets the whole one" {
  elsewhere
  printf 'node0 slots=2\nnode1 slots=2\n' >hosts
  run --separate-stderr on 0 python "$WORLD/one/hccl_tools/hccl_tools.py" --hostfile hosts --stdout
  [[ $status -eq 0 && $(grep -c server_id <<<"$output") -eq 2 ]] || fail "$stderr"
  ends 0 '*' on 0 bash "$SCRIPTS/run_cluster.sh" --device_target CPU --config config.yaml --train_script "$FIXTURES/stub_trainer.py" --hostfile hosts .
  ranks_up 0 1 2 3
}

@test "a host has another version of this project: nothing starts, and how it gets this one is said" {
  elsewhere
  printf '\n' >>site/mindspore_launch/tools/rank/agent.py
  run --separate-stderr launch_on_hosts run_mpirun_1.sh node0:1,node1:1
  refused_lines 78 'node1: another version of this project in *'"/site/mindspore_launch: "*', with files '*'; this host has '*'; share its folder, or copy it to each of them: ssh node1 '*
  rm -r site
  run --separate-stderr launch_on_hosts run_mpirun_1.sh node0:1,node1:1
  refused_lines 78 'node1: this project is neither at *'"/one there nor installed in $PYTHON; "*
}

@test "a rank that fails on the far host ends all, with its code, its log and its host" {
  lab_up 2
  STUB_DO='0: wait; 1: children; 2: await 0 1 3, exit 7; 3: children' ends 7 '*rank 2 (device 0 of node1) exited with code 7*    rank 2 gives up*' \
    \
    launch_on_hosts run_mpirun_1.sh node0:2,node1:2
  eventually no_rank_left
}

@test "a host that does not see the run's folder: its ranks' logs are there, and their end is here" {
  lab_up 2
  "$LAB_SH" root 1 mount -t tmpfs tmpfs "$WORLD"
  on 1 cp "$PROJECT/configs/mnist/lenet5_digits.yaml" config.yaml
  STUB_DO='0: wait; 1: await 0, exit 7' ends 7 '*' launch_on_hosts run_mpirun_1.sh node0:1,node1:1
  grep -q "this rank's log is on node1: " logs/latest/rank_1.log
  [[ $stderr == *"    rank 1 gives up"* ]] || fail "$stderr"
  on 1 grep -q 'rank 1 gives up' "$(readlink -f logs/latest)/rank_1.log"
}

@test "--hang_timeout where the launcher sees no rank's log: ranks that write are no hang, ranks that stand still are" {
  lab_up 2
  "$LAB_SH" root 1 mount -t tmpfs tmpfs "$WORLD"
  on 1 cp "$PROJECT/configs/mnist/lenet5_digits.yaml" config.yaml
  STUB_DO='0: tick 90, wait; 1: wait' ends 124 "*ranks 0,1: in wait ($FIXTURES/stub_trainer.py:*" \
    launch_on_hosts run_mpirun_1.sh --hang_timeout 5 node1:2
  on 1 grep -q 'tick 89' "$(readlink -f logs/latest)/rank_0.log"
  on 1 grep -q stub_trainer.py "$(readlink -f logs/latest)/rank_1.stack"
  [[ -z "$(on 1 find "$(readlink -f logs/latest)" -name '*.seen')" ]]
}

@test "SIGTERM to the launcher ends the ranks of all hosts; until then what users export was on no command line" {
  lab_up 2
  export STUB_DO='0: wait; 1: children' MY_TOKEN="token of $$ $RANDOM$RANDOM"
  launch_on_hosts_behind 2 node0:1,node1:1
  # ps shows everybody a command line; a file, so that grep's own does not have it
  [[ "$(recorded rank_1 'r["env"]["MY_TOKEN"]')" = "$MY_TOKEN" ]]
  run ! grep -lsaF -f <(printf '%s' "$MY_TOKEN") /proc/[0-9]*/cmdline
  on 0 bash -c 'kill -TERM "$(ps -ww -eo pid,args | grep "[s]cript=.*run_mpirun_1.sh" | sort -n | head -n 1 | cut -c1-8)"'
  ended
  [[ $stderr == *"SIGTERM: stopping all ranks"*"143 SIGTERM, stopped by us"* ]] || fail "$stderr"
  eventually no_rank_left
}

# set_mpirun NAME=VALUE...: parameters of the run time of Open MPI 4 and of 5, as variables.
set_mpirun() {
  local word
  for word; do
    export "OMPI_MCA_$word" "PRTE_MCA_$word"
  done
}

# lost_host WORD...: while all ranks of three hosts run, the lab does WORD... to the last; the report names it, as the
# user wrote it. Open MPI 5 ends before the ranks of other hosts can report.
lost_host() {
  lab_up 3
  export STUB_DO='0: wait; 1: children; 2: wait'
  launch_on_hosts_behind 3 --grace 1 node0:1,node1:1,10.77.0.3:1
  "$LAB_SH" "$@"
  ended
  [[ $status -ne 0 ]]
  [[ $stderr == *": the host 10.77.0.3 (rank 2) is lost after "*$'\n'"2     0       10.77.0.3       lost with its host "* ]] || fail "$stderr"
  [[ $stderr == *": mpirun failed: "*"(host-lost)"* && $stderr != *"rank mpirun"* && $stderr != *"failed first"* ]] || fail "$stderr"
  [[ $stderr == *$'\n0     0       node0           '@(143\ SIGTERM,\ stopped\ by\ us|end\ not\ reported)\ * ]] || fail "$stderr"
  [[ "$(launch_json 'r["outcome"]["first_failure"]')" = mpirun ]]
  launch_json_fits
  eventually no_rank_left
}

@test "a host is switched off: the job ends and names it" { lost_host off 2; }
@test "mpirun's daemon on a host is killed: the job ends and names the host" { lost_host root 2 pkill -KILL -x 'orted|prted'; }

@test "more hosts than mpirun begins at a time: it does not wait for ever" {
  set_mpirun plm_rsh_num_concurrent=1 plm_ssh_num_concurrent=1 # 128 by default
  lab_up 4
  ends 0 '*' launch_on_hosts run_mpirun_1.sh node0:1,node1:1,node2:1,node3:1
  ranks_up 0 1 2 3
}

# behind_gateway N: N hosts, of which node1 is the gateway to the others; its sshd lets two log in at a time.
behind_gateway() {
  lab_up "$1"
  printf 'MaxStartups 2:100:2\n' >>"$LAB/host1/sshd_config"
  # shellcheck disable=SC2016 # for the shell of the host
  "$LAB_SH" root 1 bash -c 'kill -HUP "$(cat /run/sshd.pid)"'
  printf '%s\n' 'Host node1' '  ProxyJump none' 'Host node*' '  ProxyJump node1' >jump
  cat "$LAB/host0/etc/ssh/ssh_config" >>jump
}

@test "a gateway whose sshd drops connections: all hosts answer in the end, and mpirun is not left to fail" {
  behind_gateway 7
  printf 'node%d slots=8\n' {0..6} >hosts
  run --separate-stderr on 0 python "$PROJECT/hccl_tools/hccl_tools.py" --hostfile hosts --ssh 'ssh -F jump' --stdout
  [[ $status -eq 0 && $(grep -c server_id <<<"$output") -eq 7 ]] || fail "$stderr"
  # On a busy machine one connection may be made after the other, and none is dropped: each waits for all here.
  # shellcheck disable=SC2016 # for the shell that runs it
  printf '%s\n' '#!/bin/bash' ': >"$BATS_TEST_TMPDIR/begun/$$"' 'until begun=("$BATS_TEST_TMPDIR"/begun/*) && ((${#begun[@]} >= 6 || SECONDS > 60)); do sleep 0.02; done' \
    'exec ssh -F jump "$@"' >"$BATS_TEST_TMPDIR/all_at_once"
  chmod +x "$BATS_TEST_TMPDIR/all_at_once"
  mkdir "$BATS_TEST_TMPDIR/begun"
  ends 78 '*an sshd dropped the first connections to * hosts; mpirun connects to all 6 at once*MaxStartups*' \
    launch_on_hosts run_mpirun_1.sh --ssh "$BATS_TEST_TMPDIR/all_at_once" node0:1,node1:1,node2:1,node3:1,node4:1,node5:1,node6:1
}

@test "the network to a host is cut: the job ends and names it, also where mpirun would reach it by way of another" {
  set_mpirun routed_radix=1 # each host behind the one before it: what Open MPI does with more than 64
  lost_host link 2 down
}

@test "a host that is too busy to answer is not given up" {
  lab_up 2
  export STUB_DO='0: await 1, tick 60; 1: wait'
  set_mpirun oob_tcp_keepalive_time=1 oob_tcp_keepalive_intvl=1 oob_tcp_keepalive_probes=2
  launch_on_hosts_behind 2 --grace 1 node0:1,node1:1
  on 1 pkill -STOP -x 'orted|prted' # no program of that host runs, but its kernel does
  eventually grep -q 'tick 59' logs/latest/rank_0.log
  on 1 pkill -CONT -x 'orted|prted'
  kill -0 "$LAUNCHER"
  on 1 kill -TERM "$(recorded rank_1 'r["pid"]')"
  ended
  [[ $stderr == *"rank 1 (device 0 of node1) was ended by SIGTERM"* ]] || fail "$stderr"
}

@test "another Open MPI there, no password-less ssh, a folder that is not there: the host is named" {
  lab_up 3
  mkdir bin
  printf '#!/bin/sh\necho "mpirun (Open MPI) 4.0.1"\n' >bin/mpirun
  chmod +x bin/mpirun
  "$LAB_SH" root 1 mount --bind bin/mpirun "$(readlink -f "$(command -v mpirun)")"
  "$LAB_SH" root 2 mount -t tmpfs tmpfs "$WORLD/.."
  run --separate-stderr launch_on_hosts run_mpirun_1.sh node0:1,node1:1,node2:1
  refused_lines 78 'node1: Open MPI [45].* is needed*, as here; that host has: mpirun (Open MPI) 4.0.1' \
    'node2: the folder * does not exist there; ranks run in the folder where the command was typed: share it'
  run --separate-stderr launch_on_hosts run_mpirun_1.sh --ssh 'ssh -l nobody -i /dev/null' node0:1,node1:1
  refused_lines 78 'node1: ssh asks for a password (*); set up a key for it: ssh-copy-id node1'
}

@test "a host that does not answer is said so within the time, others are named too" {
  lab_up 2
  "$LAB_SH" link 1 down
  ends 78 'run_mpirun_1.sh: node1: *' launch_on_hosts run_mpirun_1.sh node0:1,node1:1
}

@test "hosts that cannot be are named" {
  while IFS='|' read -r hosts message; do
    run --separate-stderr launch run_mpirun_1.sh --config config.yaml "$hosts"
    # shellcheck disable=SC2053 # a pattern is meant
    [[ $stderr == "run_mpirun_1.sh: "$message && $status -ne 0 ]] || fail "$hosts: $stderr"
  done <<'LIST'
, ,|HOSTS: there is no host in it; write HOST:8,HOST:8*
node0:x|HOSTS: node0:x has no number of ranks from 1 to 65536; write HOST:8,HOST:8
node0:0|HOSTS: node0:0 has no number of ranks from 1 to 65536; write HOST:8,HOST:8
node[3-1]:2|HOSTS: node[[]3-1]: 3-1 is neither a number nor a range; write sets as node[[]1-4] or node[[]1,3]
fe80::1|HOSTS: fe80::1 is an IPv6 address, which Open MPI does not accept in a list of hosts; write the host's name
no-such-host.invalid:2|no-such-host.invalid has no address (*); add it to /etc/hosts
LIST
  refused 2 'run_mpirun_1.sh: -n 5: the hosts have 2 slots in all; give them more, or start fewer ranks' \
    launch run_mpirun_1.sh --config config.yaml -n 5 127.0.0.1:2
}

@test "hostfiles that cannot be are named, with the line" {
  while IFS='|' read -r text message; do
    printf '%b' "$text" >hosts
    run --separate-stderr launch run_mpirun_2.sh --config config.yaml hosts
    refused 78 "run_mpirun_2.sh: HOSTFILE hosts$message"
  done <<'LIST'
127.0.0.1 slots=0\n|:1: slots=0: a host without slots runs nothing*
127.0.0.[1-\n|:1: 127.0.0.[[]1-: unbalanced brackets*
127.0.0.1 slots=1\n127.0.0.1 slots=1\n|:2: 127.0.0.1 is in line 1 too*
# none\n\n|: there is no host in it*
127.0.0.1:0\n|:1: 127.0.0.1:0 has no number of ranks from 1 to 65536; write HOST:8,HOST:8
::1 slots=2\n|:1: ::1 is an IPv6 address*
127.0.0.1\n|: 127.0.0.1 has no slots=N; write how many devices it has: 127.0.0.1 slots=8
LIST
}

@test "NPUs that a host has not are named, of this host and of others" {
  compgen -G '/dev/davinci*' && skip "there are NPUs here"
  lab_up 2
  run --separate-stderr on 0 bash "$SCRIPTS/run_mpirun_1.sh" --train_script "$FIXTURES/stub_trainer.py" --config config.yaml node0:1,node1:2
  refused_lines 78 'node1: its ranks need devices 0,1, it has no NPU (no file /dev/davinci0); start fewer ranks there, or see npu-smi info'
  run --separate-stderr on 0 bash "$SCRIPTS/run_mpirun_1.sh" --train_script "$FIXTURES/stub_trainer.py" --config config.yaml node0:1
  refused_lines 78 'no Ascend NPU on this machine: *'
}

# bats test_tags=trains
@test "real MindSpore: two hosts of one rank each train as one cluster, by hostfile" {
  train_for_real
  lab_up 2
  printf 'node1 slots=1\nnode0 slots=1\n' >hosts
  ends 0 '*' on 0 timeout -k 5 300 bash "$SCRIPTS/run_mpirun_2.sh" --device_target CPU --train_script "$FIXTURES/one_weight.py" \
    --config "$PROJECT/configs/mnist/lenet5_digits.yaml" hosts
  [[ $output == *'loss is '* ]] || fail "$stderr" "$output"
  fitted_alike 2 logs/latest/rank_0.log logs/latest/rank_1.log
  begins_here && second=node1 || second=node0
  [[ $stderr == *$'\n1     0       '"$second "* ]] || fail "$stderr"
  eventually no_rank_left
}

@test "mpirun's words: -x reaches the ranks of all hosts; --keep_going also those of the host where none has failed" {
  lab_up 2
  export BASH_ENV=/nowhere TMPDIR=$BATS_TEST_TMPDIR
  STUB_DO='0: await 1 2, tick 5; 1: tick 1; 2: await 0, exit 7; 3: await 2, tick 5' ends 7 \
    '*rank 2 (device 0 of node1) exited with code 7 *: 1 of 4 ranks failed: rank 2 (--keep_going)*' launch_on_hosts run_mpirun_1.sh \
    -mca orte_abort_on_non_zero_status 0 -x MINE='a b' -x LD_LIBRARY_PATH=/my/lib -x BASH_ENV -x BASH_COMPAT=4.2 -x TMPDIR -H node0:2,node1:2
  [[ "$(places MINE LD_LIBRARY_PATH BASH_COMPAT TMPDIR | sort -u)" = "a b /my/lib 4.2 $BATS_TEST_TMPDIR" ]] || fail "$(places MINE LD_LIBRARY_PATH BASH_COMPAT TMPDIR)"
  [[ "$(recorded rank_3 'r["env"]["BASH_ENV"]')" == /nowhere && $(tail -n 1 logs/latest/rank_3.log) == 'tick 4' ]]
}
