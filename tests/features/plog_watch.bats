#!/usr/bin/env bats
# What plogs say while the job runs: faults that training survives, and who waits for whom when it hangs.

# bats file_tags=thorough
load ../helper

readonly CQE='[Heartbeat]cqe err status[12]' # AISW_CANN_HCCL_029
readonly LOST='Device lost heartbeat'        # device-lost-heartbeat
readonly CODE=AISW_CANN_HCCL_029

setup() {
  setup_world
}

# watched WHAT ARGUMENT...: ranks of simulated NPUs that do WHAT, in the background; waits until all of them run.
watched() {
  launch_ranks "$1" "$2" --device_target Ascend --no_check --watch_plogs "${@:3}"
}

# says TEXT: whether it is on the launcher's stderr.
says() {
  grep -qF -- "$1" "$BATS_TEST_TMPDIR/stderr"
}

# lines CODE: how many lines of the launcher's stderr have it.
lines() {
  grep -cF -- "$1:" "$BATS_TEST_TMPDIR/stderr" || :
}

# watcher: the process that watches.
watcher() {
  pgrep -P "$LAUNCHER" -f mindspore-launch-plogs
}

@test "a fault is a line while the job runs, once for each rank and code" {
  watched "0: fault 1 $LOST, wait; 1: fault 3 $CQE, fault 1 $LOST, wait" ascend2p.sh config.yaml
  eventually says 'rank 1 (device 1): '
  eventually says device-lost-heartbeat
  eventually eval '[[ $(lines device-lost-heartbeat) == 2 ]]'
  grep -Eqx "ascend2p.sh: rank 1 \(device 1\): [0-9:]{8} $CODE: an RDMA packet got no answer .*" "$BATS_TEST_TMPDIR/stderr"
  end_by TERM 143
  [[ $(lines "$CODE") == 1 && $(lines device-lost-heartbeat) == 2 ]] || fail "$stderr"
}

@test "1,000 lines of one fault are four lines; what comes just before the end of the job is said, too" {
  watched "0: fault 1000 $CQE, await 7; 1: await 7, fault 1 $LOST" ascend2p.sh --quiet config.yaml
  eventually says '; 1000 times so far'
  touch "$STUB_OUT/rank_7.json"
  ended 0 '*rank 1 (device 1): *device-lost-heartbeat: *'
  [[ $(lines "$CODE") == 4 && $stderr == *'; 10 times so far'*'; 100 times so far'*'; 1000 times so far'* ]] || fail "$stderr"
  [[ ! -e logs/latest/plog ]]
}

@test "SIGKILL of the launcher, of its whole group, and with the watcher stopped: it is gone" {
  local how
  for how in one group stopped; do
    rm -f "$STUB_OUT"/*
    watched "0: fault 1 $CQE, wait; 1: wait" ascend2p.sh config.yaml
    eventually says "$CODE"
    dies_with_launcher "$how" "$(watcher)"
  done
}

@test "the watcher is killed: the job goes on and ends as it would" {
  watched '0: wait; 1: wait' ascend2p.sh config.yaml
  eventually watcher
  kill -KILL "$(watcher)"
  end_by TERM 143
}

@test "it holds no pipe of the launcher, is no member of the job, and the job ends as it would when somebody has stopped it" {
  watched "0: fault 1 $CQE, wait; 1: wait" ascend2p.sh config.yaml
  eventually says "$CODE"
  shares_no_pipe "$(watcher)"
  kill -STOP "$(watcher)"
  end_by TERM 143
  [[ "$(launch_json 'sorted(r["outcome"]["members"])')" = "['0', '1']" ]]
}

@test "restarts: the plogs of each attempt are watched" {
  watched "0: fault 1 $CQE, wait; 1: wait" ascend2p.sh --max_restarts 1 config.yaml
  eventually says "$CODE"
  kill -KILL "$(recorded rank_0 'r["pid"]')"
  eventually eval '[[ $(lines "$CODE") == 2 ]]'
  [[ $(wc -l < <(watcher)) == 1 ]]
  end_by TERM 143
}

@test "a folder of the user: plogs of earlier jobs say nothing" {
  export ASCEND_PROCESS_LOG_PATH=$WORLD/mine
  mkdir -p mine/rank_0/debug/plog
  printf '[ERROR] HCCL(7,python3):2025-06-19-09:28:35.212.164 [a.cc:1] [7]%s\n' "$LOST" >mine/rank_0/debug/plog/plog-7_20250619092835212.log
  touch -d '1 hour ago' mine/rank_0/debug/plog/*
  watched "0: fault 1 $CQE, wait; 1: wait" ascend2p.sh config.yaml
  eventually says "$CODE"
  end_by TERM 143
  [[ $stderr != *device-lost-heartbeat* ]] || fail "$stderr"
}

@test "a site's own fault, with what would command a terminal" {
  printf 'diagnoses:\n  - {code: our-switch, words: [[switch 9]], logs: [plog], cause: "the \\e[31mswitch", remedy: call us}\n' >ours.yaml
  export LAUNCH_DIAGNOSES=$PWD/ours.yaml
  watched '0: wait; 1: fault 1 our switch 9 is down, wait' ascend2p.sh config.yaml
  eventually says 'our-switch: the \x1b[31mswitch'
  end_by TERM 143
}

@test "without NPUs nothing writes plogs: refused" {
  refused 2 'ascend2p.sh: --watch_plogs is for Ascend: on CPU nothing writes plogs' launch ascend2p.sh --watch_plogs config.yaml
}

# ---- a job that hangs ------------------------------------------------------------------------------------

@test "--hang_timeout on NPUs: after the stacks, who waits for whom, and the last events" {
  STUB_DO='0: link 3, wait; 1: link 3, wait; 2: link 3, wait; 3: plog 0, wait' PATH=$(without py-spy) \
    ends 124 '*ranks 0, 1, 2, 3: in wait*root: rank 3 *how sure: *next: *' launch_npu ascend4p.sh --hang_timeout 2 --grace 1 config.yaml
  [[ $(grep -Ec 'rank [0-2], last in the plog: [0-9:]{8} \[ERROR\] HCCL \|  10\.' <<<"$stderr") == 3 ]] || fail "$stderr"
  [[ $stderr != *'rank 3, last'* ]] || fail "$stderr"
}

@test "--hang_timeout: without plogs, and on CPU, nothing more is said" {
  STUB_DO='0: wait; 1: wait' ends 124 '*' launch_npu ascend2p.sh --hang_timeout 2 --grace 1 config.yaml
  [[ $stderr != *plog* && $stderr != *root:* ]] || fail "$stderr"
}

@test "mpirun: the same lines while the job runs, and when it hangs" {
  need mpirun
  HCCN=()
  STUB_DO="0: fault 1 $LOST, wait; 1: plog 0, wait" \
    ends 124 "*rank 0 (device 0): *device-lost-heartbeat: *rank*: in wait*rank 0, last in the plog: *heartbeat*" \
    launch_npu run_mpirun.sh -n 2 --watch_plogs --hang_timeout 3 --grace 1 config.yaml
  [[ $stderr == *'root: rank 0 '*'Device lost heartbeat'* ]] || fail "$stderr"
}
