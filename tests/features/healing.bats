#!/usr/bin/env bats
# MindCluster's TaskD controls the ranks that msrun has started: it may kill ranks and start them again.

# bats file_tags=thorough
load ../helper

setup() {
  need_mindspore
  setup_world
  HCCN=()
  PYTHONPATH=$FIXTURES/quick_msrun:$FIXTURES/fake_taskd # the real msrun; its trainers are stubs, and so is TaskD
  export MS_ENABLE_TFT='{ARF:1}'
}

# members EXPRESSION: of launch.json's outcome, whose members are `m` and which is `o`, in Python.
members() {
  python -c 'import json, sys; o = json.load(open("logs/latest/launch.json"))["outcome"]; m = o["members"]; print(eval(sys.argv[1]))' "$1"
}

@test "a rank that fails and is started again does not end the job, and has two lines" {
  STUB_DO='1: await 0, once exit 9, print 1' ends 0 $'*rank 1 (device 1) exited with code 9 after *; TaskD decides what follows\n*rank 1 (device 1) has been restarted*\n0     0       0  *\n1     1       9, restarted  *\n1     1       0  *' \
    launch run_msrun.sh --worker_num 2 config.yaml
  [[ $(members '[m["1"]["status"], [life["status"] for life in m["1"]["earlier"]], o["first_failure"], o["exit"]]') == "[0, [9], None, 0]" ]] || fail "$(members o)"
  [[ $stderr != *' -'* && $stderr != *'.-'* ]] || fail "$stderr"
  nobody_left
}

@test "a rank that TaskD kills and starts again" {
  FAKE_TASKD='kill 1' STUB_DO='1: once wait' ends 0 $'*\n1     1       137 SIGKILL, restarted  *\n1     1       0  *' \
    launch run_msrun.sh --worker_num 2 config.yaml
  nobody_left
}

@test "--keep_going with a rank that starts twice keeps the outcome" {
  STUB_DO='1: await 0, once exit 9' ends 0 $'*\n1     1       0  *' launch run_msrun.sh --worker_num 2 --keep_going config.yaml
  [[ $(members 'm["1"]["seconds"] >= 0 and m["1"]["earlier"][0]["seconds"] >= 0') == True ]]
}

@test "all ranks are started again" {
  FAKE_TASKD=all STUB_DO='0: once wait; 1: await 0, once exit 9' ends 0 $'*\n0     0       137 SIGKILL, restarted *\n0     0       0 *\n1     1       9, restarted *\n1     1       0 *' \
    launch run_msrun.sh --worker_num 2 config.yaml
}

@test "msrun's own end decides: TaskD gives up" {
  FAKE_TASKD=give_up STUB_DO='0: wait; 1: await 0, exit 9' ends 9 $'*rank 1 (device 1) exited with code 9 after *; TaskD decides what follows\n*\n0     0       137 SIGKILL *\n1     1       9, failed first *' \
    launch run_msrun.sh --worker_num 2 config.yaml
  [[ $(members '[o["first_failure"], o["exit"]]') == "['1', 9]" ]] || fail "$(members o)"
  nobody_left
}

@test "where TaskD cannot begin, msrun keeps the ranks and a failure ends the job" {
  FAKE_TASKD=refuse STUB_DO='0: wait; 1: await 0, exit 9' ends 9 '*rank 1 (device 1) exited with code 9 after *; stopping the other rank*' \
    launch run_msrun.sh --worker_num 2 config.yaml
}

@test "the launcher's own restarts are refused beside TaskD's, and so is what no rank could read" {
  refused 2 'run_msrun.sh: --max_restarts: MS_ENABLE_TFT lets TaskD control the ranks *' \
    launch run_msrun.sh --worker_num 2 --max_restarts 1 config.yaml
  MS_ENABLE_TFT=ARF refused 78 'run_msrun.sh: MS_ENABLE_TFT: MindSpore cannot be imported with "ARF", *' launch run_msrun.sh --worker_num 2 config.yaml
}

@test "MindCluster's command line heals, too" {
  local -r port=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  STUB_DO='1: await 0, once exit 9' ends 0 $'*\n1     1       9, restarted  *\n1     1       0  *' \
    bash "$SCRIPTS/msrun_launcher.sh" --device_target CPU "$FIXTURES/stub_trainer.py --config x" 2 2 127.0.0.1 "$port" 0 output/msrun_log False 300
}

# restarted_as OTHER: rank 1 runs as another process
restarted_as() {
  [[ $(recorded rank_1 'r["pid"]') != "$1" ]]
}

@test "the watcher of a rank that was killed ends that one, and not the next start" {
  launch_ranks '0: wait; 1: wait' run_msrun.sh --worker_num 2 --grace 1 config.yaml
  local -r old=$(recorded rank_1 'r["pid"]')
  local -r agent=$(above "$old" 1)
  local -r watcher=$(pgrep -P "$agent" -f mindspore-launch-watcher)
  eventually stopped "$watcher"
  kill -KILL "$agent"
  eventually restarted_as "$old"
  local -r new=$(recorded rank_1 'r["pid"]')
  kill -CONT "$watcher" 2>/dev/null || true # the kernel may have done so: its group became an orphan when the agent died
  eventually gone "$watcher"
  eventually gone "$old"
  gone "$new" && fail "the next start was killed, too"
  end_by TERM 143 $'*\n1     1       137 SIGKILL, restarted *\n1     1       143 SIGTERM, stopped by us *'
  [[ $(members 'len(m["1"]["earlier"])') == 1 ]] || fail "$(members m)"
}

@test "signals end the job while TaskD controls it" {
  launch_ranks '0: wait; 1: wait' run_msrun.sh --worker_num 2 --grace 1 config.yaml
  end_by TERM 143 '*SIGTERM: stopping all ranks*'
}

@test "SIGTERM to an agent, which TaskD sends before a move, reaches the rank" {
  FAKE_TASKD=give_up launch_ranks '0: wait; 1: wait' run_msrun.sh --worker_num 2 config.yaml
  kill -TERM "$(above "$(recorded rank_0 'r["pid"]')" 1)"
  ended 143 $'*rank 0 (device 0) was ended by SIGTERM *; TaskD decides what follows\n*'
}

# bats test_tags=trains
@test "real msrun and real ranks: a rank that dies before it joins is started again alone, and both train" {
  # A rank that has joined cannot be replaced on CPU, by msrun alone neither: MindSpore's collectives there wait for ever.
  PYTHONPATH=$FIXTURES/ends_at_once:$FIXTURES/fake_taskd:$FIXTURES
  cat >dies.py <<'PY'
import os, sys

marker = os.path.join(os.environ["STUB_OUT"], "died")
if os.environ["RANK_ID"] == "1" and not os.path.exists(marker):
    open(marker, "w").close()
    os._exit(9)

import one_weight

sys.exit(one_weight.main())
PY
  ends 0 $'*rank 1 (device 1) exited with code 9 after *; TaskD decides what follows\n*\n1     1       9, restarted *\n1     1       0 *' \
    timeout -k 5 150 bash "$SCRIPTS/run_msrun.sh" --device_target CPU --worker_num 2 dies.py
  fitted_alike 2 <(tail -n 1 logs/latest/rank_0.log) <(tail -n 1 logs/latest/rank_1.log)
  [[ $(members '[len(m["1"]["earlier"]), o["exit"]]') == "[1, 0]" ]] || fail "$(members o)"
  nobody_left
}
