#!/usr/bin/env bats
# mpirun's own words, as the tutorials and people type them: what the launch does anyway, what mpirun gets, what is refused.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
  HCCN=()
}

# line SCRIPT WORD...: the line with which --dry_run would start mpirun, up to the variables that it passes, in `output`.
line() {
  ends 0 '*' launch "$1" --dry_run "${@:2}"
  output=$(grep '^mpirun ' <<<"$output")
}

# has PATTERN...: the line has all of them.
has() {
  local pattern
  for pattern; do
    # shellcheck disable=SC2053 # a pattern is meant
    [[ " $output " == *' '$pattern' '* ]] || fail "no $pattern in: $output" || return
  done
}

# has_not PATTERN...: the line has none of them.
has_not() {
  local pattern
  for pattern; do
    # shellcheck disable=SC2053 # a pattern is meant
    [[ " $output " != *' '$pattern' '* ]] || fail "$pattern in: $output" || return
  done
}

@test "the tutorials' command: its words change nothing, and the ranks run" {
  need mpirun
  STUB_DO='' ends 0 'run_mpirun.sh: 2 ranks on devices 0,1, *' launch run_mpirun.sh --allow-run-as-root -np 2 -mca orte_abort_on_non_zero_status 1 \
    -mca btl_tcp_if_include lo -bind-to none -x GRAPH_OP_RUN=1 -x PATH --output-filename log_output --merge-stderr-to-stdout config.yaml
  [[ "$(places RANK_ID RANK_SIZE GRAPH_OP_RUN)" = $'0 2 1\n1 2 1' ]]
  [[ -e log_output/1/rank.1/stdout ]]
}

@test "a program with its own words: mpirun's words after it are its own" {
  need mpirun
  printf 'import os, sys\nprint(os.environ["RANK_ID"], os.environ["MINE"], sys.argv[1:])\n' >net.py
  for words in 'net.py' "$PYTHON net.py"; do
    # shellcheck disable=SC2086 # several words
    ends 0 '*' bash "$SCRIPTS/run_mpirun.sh" --device_target CPU -n 2 -x MINE='a b' $words -mca x -n 3
    [[ "$(cat logs/latest/rank_?.log)" = "0 a b ['-mca', 'x', '-n', '3']"$'\n'"1 a b ['-mca', 'x', '-n', '3']" ]] || fail "$(cat logs/latest/rank_?.log)"
  done
}

@test "mpirun gets what only it knows, in the spelling of 4 and 5; what the launch sets, too, is there once" {
  need mpirun
  line run_mpirun.sh -np 2 config.yaml
  has '--map-by slot' '--bind-to none' '* oob_tcp_keepalive_time 5'
  line run_mpirun.sh --np=2 -mca pml ob1 --mca btl ^openib --mca oob_tcp_keepalive_time 77 --pmixmca a -1 --report-bindings \
    -display-map --bind-to=core -map-by socket config.yaml
  has '-n 2' '--mca pml ob1 --mca btl \\^openib --mca oob_tcp_keepalive_time 77 --pmixmca a -1 --report-bindings --display-map --bind-to core --map-by socket * -I -S */agent.py *'
  has_not '* oob_tcp_keepalive_time 5' '--bind-to none' '--map-by slot'
  line run_mpirun.sh -n 2 -mca hwloc_base_binding_policy socket -mca rmaps_base_mapping_policy core config.yaml
  has '--bind-to socket --map-by core'
  has_not '--map-by slot' '--bind-to none'
  line run_mpirun.sh -n 2 -map-by slot:PE=1 config.yaml # Open MPI 5 binds then, and takes no --bind-to none
  has '--map-by slot:PE=1'
  has_not '--bind-to *'
  line run_mpirun_1.sh --config config.yaml --network eth0 -mca btl_tcp_if_include eth1 localhost:2
  has '* oob_tcp_if_include eth0' '--mca btl_tcp_if_include eth1'
  has_not '-mca btl_tcp_if_include eth0'
}

@test "bound as the user's words say, the ranks run" {
  need mpirun
  STUB_DO='' ends 0 '*' launch run_mpirun.sh -n 1 --map-by slot:PE=1 --report-bindings config.yaml
  grep -Eiq 'rank 0 (is )?bound to' logs/latest/mpirun.log || fail "$(<logs/latest/mpirun.log)"
  STUB_DO='' ends 0 '*' launch run_mpirun.sh -n 1 --bind-to core -display-map --oversubscribe config.yaml
}

@test "hosts by mpirun's words: in the place of the argument, and where a script has none" {
  need mpirun
  line run_mpirun_1.sh --config config.yaml -H localhost:3
  has '-n 3 -H localhost:3'
  line run_mpirun.sh --host localhost:3 -n 2 config.yaml
  has '-n 2 -H localhost:3'
  echo 'localhost slots=3' >'my hosts'
  line run_mpirun.sh -hostfile 'my hosts' config.yaml
  [[ $output == 'mpirun '*'-n 3 --hostfile '*hosts*' --map-by slot '* ]]
  line run_mpirun_2.sh --config config.yaml --machinefile 'my hosts'
  [[ $output == 'mpirun '*'-n 3 --hostfile '*hosts*' --map-by slot '* ]]
  ends 0 '*' bash "$SCRIPTS/run_mpirun_1.sh" --device_target CPU --dry_run -H localhost:2 "$PYTHON" -c pass
  [[ $output == *"agent.py $PYTHON -c pass"$'\n'* ]] || fail "$output"
}

@test "hosts that a machine wrote: the ranks run, one for each time that a host is named" {
  need mpirun
  STUB_DO='' ends 0 'run_mpirun_1.sh: 2 ranks on devices 0,1, *' launch run_mpirun_1.sh --allow-run-as-root \
    --host "localhost,localhost,${NOTHING-}" -np 2 --config config.yaml
  [[ "$(places RANK_ID DEVICE_ID RANK_SIZE)" = $'0 0 2\n1 1 2' ]]
  printf '\xef\xbb\xbflocalhost:2\r\n' >hosts # MPICH's syntax, from an editor of Windows
  STUB_DO='' ends 0 'run_mpirun_2.sh: 2 ranks on devices 0,1, *' launch run_mpirun_2.sh --config config.yaml hosts
  echo localhost >hosts
  STUB_DO='' ends 0 'run_mpirun.sh: 2 ranks on devices 0,1, *' launch run_mpirun.sh -n 2 --npernode 3 -hostfile hosts config.yaml
  line run_mpirun.sh --no_check --hostfile <(printf '%s\n' '127.0.0.[1-3,7] slots=2') config.yaml
  has '-n 8 -H 127.0.0.1:2,127.0.0.2:2,127.0.0.3:2,127.0.0.7:2'
}

@test "run_mpirun_1.sh without HOSTS: this host, which is said; a program is no host" {
  need mpirun
  ends 0 '*run_mpirun_1.sh: note: no HOSTS are named: all ranks run on this host*' launch run_mpirun_1.sh -n 2 --config config.yaml
  ranks_up 0 1
  ends 0 '*' bash "$SCRIPTS/run_mpirun_1.sh" --device_target CPU --dry_run "$PYTHON" -c pass
  [[ $output == *' -n 8 -H localhost:8 '*"agent.py $PYTHON -c pass"$'\n'* ]] || fail "$output"
}

@test "-x: the ranks alone get the value, whatever it is, and the variables that belong to a host" {
  need mpirun
  export MINE=$'old\nvalue'
  STUB_DO='' ends 0 '*' launch run_mpirun.sh -n 1 -x PATH=/nowhere -x BASH_ENV=/nowhere -x IFS=: -x UID=5 -x TMOUT=1 -x words=mine \
    -x MINE -x EMPTY= -x TEXT=$'a;b "c" $(touch ran)\n-x' -x HOME -x LD_PRELOAD=/no.so -x words -x SHELLOPTS=noexec config.yaml
  [[ "$(places PATH BASH_ENV IFS UID TMOUT words EMPTY HOME SHELLOPTS)" = "/nowhere /nowhere : 5 1 mine  $HOME noexec" ]]
  [[ "$(recorded rank_0 'r["env"]["TEXT"], r["env"]["MINE"], r["env"]["LD_PRELOAD"]')" = "('a;b \"c\" \$(touch ran)\\n-x', 'old\\nvalue', '/no.so')" ]]
  [[ ! -e ran && "$(recorded rank_0 '[n for n in r["env"] if "KEPT" in n]')" = '[]' ]]
}

@test "-x DATA_PATH=... is the folder of the data; a variable that is not there is said" {
  need mpirun
  cp "$PROJECT/configs/mnist/lenet5_mnist.yaml" .
  ends 0 '*note: -x NOBODY: your shell exports no such variable*' bash "$SCRIPTS/run_mpirun.sh" --device_target CPU --dry_run \
    -x DATA_PATH=./MNIST_Data/train/ -x NOBODY lenet5_mnist.yaml
  [[ $output == *'LAUNCH_FOR_RANKS_DATA_PATH=./MNIST_Data/train/'* ]] || fail "$output"
}

@test "mpirun's words on a script that starts no mpirun are unknown" {
  refused 2 'ascend2p.sh: unknown option -mca; run_mpirun.sh takes it; see: *' launch ascend2p.sh -mca a b config.yaml
}

@test "what cannot be is refused in a line, with the reason" {
  while IFS='|' read -r arguments message; do
    eval "arguments=($arguments)"
    refused_later 2 "${arguments[0]}: $message*" launch "${arguments[@]}" config.yaml
  done <<'LIST'
run_mpirun.sh -mca routed_radix 2|-mca routed_radix: mpirun would not learn of a lost host; the launch connects it to each of them
run_mpirun.sh -mca plm_rsh_num_concurrent 9|-mca plm_rsh_num_concurrent: mpirun would hang if it were less than the number of hosts; the launch sets it
run_mpirun.sh --prtemca prte_forward_signals 2|--prtemca prte_forward_signals: the launcher needs the signals that mpirun forwards by itself
run_mpirun.sh -mca plm_rsh_args "-p 22"|-mca plm_rsh_args: write the whole command: --ssh "ssh -p 2222"
run_mpirun.sh -mca orte_abort_on_non_zero_status maybe|-mca orte_abort_on_non_zero_status maybe: write 1, or 0 for --keep_going
run_mpirun.sh -mca pml ob1 -mca pml ucx|-mca pml is given twice; give it once
run_mpirun.sh -mca "p;ml" ob1|-mca p;ml: p;ml is not the name of a parameter
run_mpirun.sh -mca pml --bind-to|-mca: --bind-to is not a value
run_mpirun.sh -mca pml ''|-mca: '' is not a value
run_mpirun.sh -mca pml $'a\nb'|-mca: $'a\\nb' has a control character
run_mpirun.sh -mca pml=ob1|-mca pml=ob1: pml=ob1 is not the name of a parameter
run_mpirun.sh -mca=pml ob1|-mca: write its values after it, without =
run_mpirun.sh -x 1A=2|-x 1A: write -x NAME or -x NAME=VALUE
run_mpirun.sh -x A-B=2|-x A-B: write -x NAME or -x NAME=VALUE
run_mpirun.sh -x "a b"|-x a\\ b: write -x NAME or -x NAME=VALUE
run_mpirun.sh -x -n|-x: -n is not a value
run_mpirun.sh -x RANK_ID=3|-x RANK_ID=...: the launch itself sets RANK_ID
run_mpirun.sh -x LAUNCH_JOB=3|-x LAUNCH_JOB=...: the launch itself sets LAUNCH_JOB
run_mpirun.sh -wdir /|-wdir /: ranks run in the folder where you type the command; type cd / before it
run_mpirun.sh --stdin all|--stdin all: ranks have no standard input
run_mpirun.sh --xterm 0|--xterm: ranks have no terminal; their output is in rank_N.log
run_mpirun.sh --enable-recovery|--enable-recovery: write --keep_going: the other ranks go on when one fails; or --max_restarts N
run_mpirun.sh --app file|--app: all ranks run one program
run_mpirun.sh --bind-to core --bind_core|--bind_core and --bind-to contradict each other; give only one of them
run_mpirun.sh -H a:1 --hostfile f|--hostfile f: the hosts are named twice; name them once
run_mpirun_1.sh -H a:1|HOSTS config.yaml: an option names hosts, too; name them once
run_mpirun.sh -H localhost:1 -npernode 2|--npernode 2: localhost has 1 slot; write that number of slots, or none
run_mpirun.sh -H a:1,b:1 --map-by node|--map-by node: the launch fills one host after the other, in the order of the devices; write how many ranks a host gets: HOST:8, or slots=8
run_mpirun.sh -H a:1,b:1 -mca rmaps_base_mapping_policy node|-mca rmaps_base_mapping_policy node: the launch fills one host after the other, in the order of the devices; write how many ranks a host gets: HOST:8, or slots=8
run_mpirun.sh -mca mca_base_env_list "A=1;B=2"|-mca mca_base_env_list: write -x NAME=VALUE, once for each variable
run_mpirun.sh -mca hwloc_base_binding_policy core -bind-to core|-bind-to is given twice; give it once
run_mpirun.sh -np x|-n x is not a number from 1 to 65536
run_gpu.sh --rankfile f|--rankfile: the launch fills one host after the other, in the order of the devices; write how many ranks a host gets: HOST:8, or slots=8
LIST
  all_refused
}
