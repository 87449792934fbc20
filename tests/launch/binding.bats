#!/usr/bin/env bats
# --bind_core and --bind_numa: the cores on which ranks really run, under every engine, and two jobs at once.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  setup_world
  two_cores
}

teardown() {
  lab_down
  end_left_over
}

# two_cores: from now on this test may use two cores only, A and B, however many there are.
two_cores() {
  local cores
  need taskset
  cores=$(python -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')
  A=${cores% *} B=${cores#* }
  [[ $A != "$B" ]] || skip "needs 2 processors"
  taskset -c -p "$A,$B" "$BASHPID" >/dev/null
}

# on_core CORES COMMAND...: the command, while this test may use these cores only.
on_core() {
  taskset -c -p "$1" "$BASHPID" >/dev/null
  "${@:2}"
  taskset -c -p "$A,$B" "$BASHPID" >/dev/null
}

# cores_of RANK: on which cores this process of the trainer, which runs, may run.
cores_of() {
  sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$(recorded "rank_$1" 'r["pid"]')/status"
}

# bound SCRIPT ARGUMENT...: two ranks, each with a core of its own, and threads, notes and records that say so.
bound() {
  launch_ranks '0: wait; 1: wait' "$@"
  [[ "$(cores_of 0) $(cores_of 1)" = "$A $B" ]] || fail "$(cores_of 0) $(cores_of 1)"
  for rank in 0 1; do
    [[ "$(recorded "rank_$rank" 'r["env"]["OMP_NUM_THREADS"], r["env"]["MSRUN_CPU_LIST"]')" = "('1', '[$(cores_of "$rank")]')" ]]
    [[ "$(recorded "rank_$rank" '"LAUNCH_BIND" in r["env"]')" = False ]]
    [[ "$(head -n 1 "logs/latest/rank_$rank.log")" = "note: this rank is bound to cores $(cores_of "$rank")" ]]
  done
  [[ "$(launch_json '[rank["cores"] for rank in r["ranks"]]')" = "['$A', '$B']" ]]
  launch_json_fits
  end_by TERM 143
  [[ -z "$(ls "$LAUNCH_LOCKS"/*)" ]]
}

# job NAME ARGUMENT...: one rank that runs until it is told to end; its launcher's process id in NAME.
job() {
  rm -f "$STUB_OUT"/*
  launch_ranks '0: wait' ascend1p.sh "${@:2}" config.yaml
  printf -v "$1" %s "$LAUNCHER"
}

@test "our own shell: each rank has its core; the scheduler may run on both" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --bind_core config.yaml
  local -r scheduler=$(pgrep -f -P "$LAUNCHER" mindspore_scheduler)
  [[ "$(taskset -c -p "$scheduler")" == *[:\ ]"$A"[,-]"$B" ]]
  end_by TERM 143
  rm "$STUB_OUT"/*
  bound ascend2p.sh --bind_core=True config.yaml
}

@test "mpirun: each rank has its core" {
  need mpirun
  HCCN=()
  bound run_mpirun.sh -n 2 --bind_core config.yaml
}

@test "msrun: each rank has its core, by --bind_core True as its users type" {
  need_mindspore
  PYTHONPATH=$FIXTURES/quick_msrun HCCN=()
  bound run_msrun.sh --worker_num 2 --bind_core True config.yaml
}

@test "mpirun on another host: the ranks find their cores there" {
  need mpirun ssh
  lab_up 2
  STUB_DO='' ends 0 '*' on 0 bash "$SCRIPTS/run_mpirun_1.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" \
    --config config.yaml --bind_core node1:2
  for rank in 0 1; do
    [[ "$(head -n 1 "logs/latest/rank_$rank.log")" = "note: this rank is bound to cores "* ]] || fail "$(<"logs/latest/rank_$rank.log")"
  done
  [[ "$(recorded rank_0 'r["env"]["MSRUN_CPU_LIST"]') $(recorded rank_1 'r["env"]["MSRUN_CPU_LIST"]')" = "[$A] [$B]" ]]
  STUB_DO='' ends 0 '*' on 0 bash "$SCRIPTS/run_mpirun_1.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" \
    --config config.yaml --bind_core node1:3
  [[ "$(<logs/latest/rank_2.log)" = 'note: this rank is not bound to cores: none are found for it on this host' ]]
}

# mapped SCRIPT WORD...: two ranks and the scheduler, with the cores of a map, and memory of node 0 by numactl
mapped() {
  [[ -e /sys/devices/system/node/node0 ]] || skip "this machine does not show NUMA nodes"
  mkdir bin
  printf '#!/bin/sh\necho "$$ $*" >>%q\nshift 3\nexec "$@"\n' "$WORLD/numactl" >bin/numactl
  chmod +x bin/numactl
  PATH=$WORLD/bin:$PATH
  printf '{"bind_config": {"bind_cpu_mode": "cpu", "bind_memory_mode": "numa"},
    "bind_cpu": {"device0": {"main": "%s"}, "device1": {"main": "%s"}, "scheduler": {"main": "%s"}},
    "bind_memory": {"device1": 0}}' "$B" "$A" "$B" >bind.json
  launch_ranks '0: wait; 1: wait' "$@" --bind_numa bind.json config.yaml
  [[ "$(cores_of 0) $(cores_of 1)" = "$B $A" ]] || fail "$(cores_of 0) $(cores_of 1)"
  eventually test -s "$STUB_OUT/scheduler.json"
  local scheduler # other tests may have one, too
  for scheduler in $(pgrep -f mindspore_scheduler.py); do
    ! grep -qzxF "STUB_OUT=$STUB_OUT" "/proc/$scheduler/environ" || break
  done
  [[ "$(taskset -c -p "$scheduler")" == *": $B" ]] || fail "$(taskset -c -p "$scheduler")"
  [[ "$(<numactl)" == "$(recorded rank_1 'r["pid"]') --membind 0 -- "* ]] || fail "$(<numactl)"
  [[ "$(launch_json '[(rank["cores"], rank.get("memory")) for rank in r["ranks"]]')" = "[('$B', None), ('$A', '0')]" ]]
  [[ "$(recorded rank_0 'r["env"]["MSRUN_BIND_FILE"]')" = "$WORLD/bind.json" ]]
  launch_json_fits
  end_by TERM 143
}

@test "our own shell: a map gives ranks, their memory and the scheduler their places" { mapped ascend2p.sh; }

@test "msrun: a map gives ranks, their memory and the scheduler their places" {
  need_mindspore
  export PYTHONPATH=$FIXTURES/quick_msrun
  HCCN=()
  mapped run_msrun.sh --worker_num 2
}

@test "--bind_numa: ranks on one node share its cores, and no lock is taken" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --bind_numa config.yaml
  local -r nodes=$(cat /sys/devices/system/node/node*/cpulist 2>/dev/null | wc -l)
  ((nodes > 1)) || [[ "$(cores_of 0) $(cores_of 1)" = "$A"[,-]"$B $A"[,-]"$B" ]] || fail "$(cores_of 0)"
  [[ "$(<logs/latest/rank_0.log)" == 'note: this rank is bound to cores '* ]]
  [[ ! -e $LAUNCH_LOCKS ]]
  end_by TERM 143
}

@test "without the options, or with =False, ranks may run on every core" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --bind_core --bind_numa=False --bind_core=false config.yaml
  [[ "$(cores_of 0) $(cores_of 1)" = "$A"[,-]"$B $A"[,-]"$B" ]]
  [[ ! -s logs/latest/rank_0.log ]]
  end_by TERM 143
}

@test "a second job takes the cores that the first one left; a third is refused, and names the job" {
  local first second
  on_core "$A" job first --bind_core
  job second --bind_core
  [[ "$(cores_of 0)" = "$B" ]]
  ends 78 "*ascend1p.sh: --bind_core: too few cores for the 1 rank of this host: core $A in use by */ascend1p-*-$first (process $first of *), core $B in use by *-$second (*); wait until a job has ended, or start without --bind_core" \
    launch ascend1p.sh --bind_core config.yaml
  ends 78 "*--bind_numa: too few cores*-$first *-$second *" launch ascend1p.sh --bind_numa config.yaml
  STUB_DO='' ends 0 '*' launch ascend1p.sh config.yaml
  kill -KILL "$second"
  eventually launch ascend1p.sh --bind_core --dry_run config.yaml
  STUB_DO='' ends 0 '*' launch ascend1p.sh --bind_core config.yaml
  [[ "$(head -n 1 logs/latest/rank_0.log)" = "note: this rank is bound to cores $B" ]]
  kill "$first"
}

@test "of two jobs that start at once and want all cores, one is refused" {
  local -a pids=()
  local pid status refused=0
  export STUB_DO='0: wait'
  for pid in 0 1; do
    launch_behind ascend1p.sh --bind_core config.yaml
    pids+=("$LAUNCHER")
  done
  eventually one_has_ended "${pids[@]}"
  eventually ranks_up 0
  for pid in "${pids[@]}"; do
    status=0
    gone "$pid" || kill "$pid"
    wait "$pid" || status=$?
    ((status != 78)) || refused=$((refused + 1))
  done
  ((refused == 1)) || fail "$refused were refused"
}

one_has_ended() {
  gone "$1" || gone "$2"
}

@test "--dry_run shows the cores, and takes none" {
  ends 0 '*' launch ascend2p.sh --bind_core --dry_run config.yaml
  [[ $output == *"env RANK_ID=1 DEVICE_ID=1 "*" taskset -c $B "*stub_trainer.py* ]] || fail "$output"
  [[ ! -e $LAUNCH_LOCKS ]]
  need mpirun
  HCCN=()
  ends 0 '' launch run_mpirun.sh -n 2 --bind_core --dry_run config.yaml
  [[ $output == *"LAUNCH_BIND=core\\ CPU\\ 0=$A\\ 1=$B "* ]] || fail "$output"
}

@test "what is not True or False, both options, and more ranks than cores are refused in one line" {
  refused 2 '*ascend2p.sh: --bind_core=yes: write --bind_core, --bind_core=True or --bind_core=False; see: *' \
    launch ascend2p.sh --bind_core=yes config.yaml
  refused 2 "*--bind-numa='': write *" launch ascend2p.sh --bind-numa= config.yaml
  refused 2 '*--bind_core and --bind_numa: give only one: *' launch ascend2p.sh --bind_core --bind_numa config.yaml
  refused 78 "*--bind_core: too few cores for the 4 ranks of this host: this launch may use only cores $A,$B; start fewer *" \
    launch ascend4p.sh --bind_core config.yaml
}

@test "where locks cannot be, the ranks are bound all the same, and it is said" {
  export LAUNCH_LOCKS=$BATS_TEST_TMPDIR/no/such/folder
  printf '' >"$BATS_TEST_TMPDIR/no"
  STUB_DO='' ends 0 '*other jobs cannot see which cores this one uses: *' launch ascend2p.sh --bind_core config.yaml
  [[ "$(head -n 1 logs/latest/rank_1.log)" = "note: this rank is bound to cores $B" ]]
}
