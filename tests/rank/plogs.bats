#!/usr/bin/env bats
# CANN's logs of every rank, the plogs: where they are, which stay after the run, and how much of them.

load ../helper
load ../lab/lab

setup() {
  setup_world
}

teardown() {
  lab_down
  end_left_over
}

# pair ARGUMENT...: two ranks on NPUs that are not looked for.
pair() {
  rm -f "$STUB_OUT"/* # ranks await those of this launch
  launch_npu ascend2p.sh "$@" config.yaml
}

# plogs FOLDER: the plogs below it, without what differs from run to run, one a line.
plogs() {
  (cd "$1" && find . -type f -name '*.log' | sed -E 's/plog-[0-9]+_[0-9]+/plog-PID_TIME/' | sort)
}

# plog_of RANK [FOLDER]: the path of its only plog.
plog_of() {
  printf '%s\n' "${2-logs/latest}/plog/rank_$1/debug/plog/"*
}

# bats test_tags=slow
@test "each rank has a folder of its own, in that of the run, made before it starts" {
  STUB_DO='0: plog 1; 1: plog 2, await 0, exit 3' ends 3 '*' pair
  local -r run=$(readlink -f logs/latest)
  [[ "$(places ASCEND_PROCESS_LOG_PATH)" = "$run/plog/rank_0"$'\n'"$run/plog/rank_1" ]]
  [[ "$(plogs logs/latest/plog)" = $'./rank_0/debug/plog/plog-PID_TIME.log\n./rank_1/debug/plog/plog-PID_TIME.log' ]]
  [[ "$(grep -c ERROR "$(plog_of 1)")" = 2 ]]
  [[ "$(places ASCEND_GLOBAL_LOG_LEVEL)" = $'-\n-' ]] # which the user has not set
  printf 'import os\nassert os.path.isdir(os.environ["ASCEND_PROCESS_LOG_PATH"])\n' >there.py
  ends 0 '*' bash "$SCRIPTS/ascend2p.sh" --no_check "${HCCN[@]}" --train_script there.py config.yaml
}

@test "what CANN logs stays as the user has set it, and nothing of ours reaches the trainer" {
  ASCEND_GLOBAL_LOG_LEVEL=0 ends 0 '*' pair
  [[ "$(places ASCEND_GLOBAL_LOG_LEVEL LAUNCH_PLOGS)" = $'0 -\n0 -' ]]
}

# bats test_tags=slow
@test "on CPU nothing of it is there, whatever the user's shell has" {
  export ASCEND_PROCESS_LOG_PATH=$WORLD/mine
  STUB_DO='1: await 0, exit 3' ends 3 '*' launch ascend2p.sh --keep_plogs all config.yaml
  [[ "$(places ASCEND_PROCESS_LOG_PATH)" = "$ASCEND_PROCESS_LOG_PATH"$'\n'"$ASCEND_PROCESS_LOG_PATH" ]]
  [[ ! -e mine && ! -e logs/latest/plog ]]
  [[ "$(launch_json '"plogs" in r or "other_logs" in r')" = False ]]
}

# bats test_tags=slow
@test "a folder of the user: each rank has one below it, and the launcher removes and cuts nothing there" {
  mkdir mine
  printf 'of another job\n' >mine/note.log
  export ASCEND_PROCESS_LOG_PATH=mine STUB_DO='0: plog 1 9; 1: plog 0, await 0'
  ends 0 '*' pair --keep_plogs none
  [[ "$(places ASCEND_PROCESS_LOG_PATH)" = "$WORLD/mine/rank_0"$'\n'"$WORLD/mine/rank_1" ]]
  STUB_DO+=', exit 3' ends 3 '*' pair
  [[ $(plogs mine) == $'./note.log\n./rank_0/debug/plog/plog-PID_TIME.log\n./rank_0/debug/plog/plog-PID_TIME.log\n./rank_1/'* ]] || fail "$(plogs mine)"
  [[ "$(find mine -size +9000k | wc -l)" = 2 && ! -e logs/latest/plog ]]
  [[ "$(launch_json 'r["plogs"], r["other_logs"]["ASCEND_PROCESS_LOG_PATH"]')" = "({'folder': \"$WORLD/mine\", 'keep': 'failed'}, 'mine')" ]]
  launch_json_fits
}

# bats test_tags=slow
@test "an empty variable of the user is none, and folders without plogs are removed, also after a failure" {
  ASCEND_PROCESS_LOG_PATH='' STUB_DO='1: await 0, exit 3' ends 3 '*' pair
  [[ "$(places ASCEND_PROCESS_LOG_PATH)" = "$(readlink -f logs/latest)/plog/rank_0"* ]]
  [[ ! -e logs/latest/plog ]]
}

# bats test_tags=slow
@test "a folder of the user that cannot be written: the variable stays, and the rank's log says so in one line" {
  printf 'a file\n' >taken
  export ASCEND_PROCESS_LOG_PATH=$WORLD/taken STUB_DO='0: print 1'
  ends 0 '*' pair
  [[ "$(places ASCEND_PROCESS_LOG_PATH)" = "$WORLD/taken"$'\n'"$WORLD/taken" ]]
  [[ "$(<logs/latest/rank_0.log)" = "note: CANN's logs of this rank are not in $WORLD/taken/rank_0: "*$'\nline 0\nno end' ]] || fail "$(<logs/latest/rank_0.log)"
  [[ "$(grep -c . logs/latest/rank_1.log)" = 1 ]]
}

# bats test_tags=slow
@test "--dry_run makes no folder and prints the commands that do" {
  pair --dry_run >plan.sh
  [[ ! -e logs ]]
  timeout 60 bash plan.sh
  [[ "$(places ASCEND_PROCESS_LOG_PATH)" = "$WORLD/logs/"*/plog/rank_0$'\n'*/plog/rank_1 ]]
  [[ -d $(recorded rank_1 'r["env"]["ASCEND_PROCESS_LOG_PATH"]') ]]
}

# ---- what stays -------------------------------------------------------------------------------------

# bats test_tags=slow
@test "--keep_plogs failed, the default: after a success they are removed, after a failure they stay" {
  STUB_DO='0: plog 1; 1: plog 0' ends 0 '*' pair
  [[ ! -e logs/latest/plog && -e logs/latest/rank_1.log ]]
  STUB_DO='0: plog 1; 1: plog 0, await 0, exit 4' ends 4 '*' pair --keep_plogs failed
  [[ "$(plogs logs/latest/plog | wc -l)" = 2 ]]
  [[ "$(launch_json 'r["plogs"]')" = "{'folder': 'plog', 'keep': 'failed'}" ]]
}

# bats test_tags=slow
@test "--keep_plogs all and none" {
  STUB_DO='0: plog 1' ends 0 '*' pair --keep_plogs all
  [[ "$(plogs logs/latest/plog)" = ./rank_0/debug/plog/plog-PID_TIME.log ]]
  [[ ! -e logs/latest/plog/rank_1 ]]
  STUB_DO='0: plog 1; 1: plog 1, await 0, exit 4' ends 4 '*' pair --keep-plogs=none
  [[ ! -e logs/latest/plog ]]
}

@test "--keep_plogs with another word is refused" {
  refused 2 '*--keep_plogs some: write one of failed, all, none*' pair --keep_plogs some
}

# bats test_tags=slow
@test "after a limit or a signal they stay, too" {
  STUB_DO='0: plog 1, wait' ends 124 '*' pair --timeout 8 --grace 1
  [[ -e $(plog_of 0) ]]
}

# bats test_tags=slow
@test "restarts: each attempt has folders of its own; those of the failed one stay" {
  STUB_DO='0: plog 1; 1: plog 2, first await 0, first exit 5' ends 0 '*' pair --max_restarts 1
  [[ "$(plogs logs/latest | grep -c ^./plog/)" = 2 ]]
  [[ ! -e logs/latest/restart_1/plog && -e logs/latest/restart_1/rank_1.log ]]
  [[ "$(places ASCEND_PROCESS_LOG_PATH)" = */restart_1/plog/rank_0$'\n'*/restart_1/plog/rank_1 ]]
}

# bats test_tags=slow
@test "what stays is cut, and one line of the report says so; with --keep_plogs all nothing is cut" {
  export STUB_DO='0: plog 1 20; 1: plog 2, await 0, exit 3'
  ends 3 "*the kept plogs are cut: 1*.* MiB from 1 rank are left out*--keep_plogs all*" pair
  [[ "$(grep -c 'are left out' <<<"$stderr")" = 1 ]]
  [[ "$(stat -c %s "$(plog_of 0)")" -le $((8 << 20)) ]]
  [[ "$(head -n 2 "$(plog_of 0)" | tail -n 1)" == *'error 0' && "$(tail -n 1 "$(plog_of 0)")" == *ends ]]
  [[ "$(grep -c 'bytes are left out here' "$(plog_of 0)")" = 1 ]]
  ends 3 '*' pair --keep_plogs all
  [[ "$(stat -c %s "$(plog_of 0)")" -gt $((20 << 20)) && $stderr != *'left out'* ]] || fail "$stderr"
}

# bats test_tags=slow
@test "a link in the folder to a file outside: the file is neither cut nor removed" {
  head -c 9000000 /dev/zero >big.log
  cp big.log hard.log
  mkdir outside
  cp big.log outside/
  cat >links.py <<'PY'
import os
folder = os.environ["ASCEND_PROCESS_LOG_PATH"] + "/debug/plog"
os.makedirs(folder)
os.symlink(os.path.abspath("big.log"), folder + "/plog-1_1.log")
os.link("hard.log", folder + "/plog-2_1.log")
os.symlink(os.path.abspath("outside"), folder + "/more")
raise SystemExit(int(os.environ["CODE"]))
PY
  for code in 3 0; do
    CODE=$code ends "$code" '*' bash "$SCRIPTS/ascend2p.sh" --no_check "${HCCN[@]}" --train_script links.py config.yaml
    [[ "$(stat -c %s big.log hard.log outside/big.log | sort -u)" = 9000000 ]]
  done
  [[ ! -e logs/latest/plog ]]
}

@test "a link in the place of the folder itself: nothing behind it is removed" {
  mkdir -p outside/rank_0
  printf 'mine\n' >outside/rank_0/plog-1_1.log
  cat >replaced.py <<'PY'
import os, shutil
if os.environ["RANK_ID"] == "0":
    shutil.rmtree(os.environ["LOG_DIR"] + "/plog")
    os.symlink(os.path.abspath("outside"), os.environ["LOG_DIR"] + "/plog")
PY
  ends 0 '*' bash "$SCRIPTS/ascend1p.sh" --no_check "${HCCN[@]}" --train_script replaced.py config.yaml
  [[ "$(<outside/rank_0/plog-1_1.log)" = mine ]]
}

# ---- launch.json ------------------------------------------------------------------------------------

# bats test_tags=slow
@test "launch.json has the process of every member, and where else logs are" {
  GLOG_v=2 MS_RDR_PATH=/rdr ends 0 '*' pair
  [[ "$(launch_json 'r["outcome"]["members"]["1"]["pid"]')" = "$(recorded rank_1 'r["pid"]')" ]]
  [[ "$(launch_json '{n: v for n, v in r["other_logs"].items() if n[:4] != "core"}')" = "{'GLOG_v': '2', 'MS_RDR_PATH': '/rdr'}" ]]
  [[ "$(launch_json 'r["other_logs"]["core_pattern"]')" = "$(</proc/sys/kernel/core_pattern)" ]]
  (
    ulimit -Sc 0
    pair
  )
  [[ "$(launch_json 'r["other_logs"]["core_limit"]')" = 0 ]]
  launch_json_fits
}

# ---- engines ----------------------------------------------------------------------------------------

# bats test_tags=thorough
@test "mpirun: the same folders, the same rules" {
  need mpirun
  HCCN=()
  STUB_DO='0: plog 1; 1: plog 2, await 0, exit 3' ends 3 '*' launch_npu run_mpirun.sh -n 2 config.yaml
  [[ "$(plogs logs/latest/plog | wc -l)" = 2 ]]
  [[ "$(places ASCEND_PROCESS_LOG_PATH LAUNCH_PLOGS)" = */plog/rank_0' -'$'\n'*/plog/rank_1' -' ]]
  [[ "$(launch_json 'r["outcome"]["members"]["1"]["pid"]')" = "$(recorded rank_1 'r["pid"]')" ]]
  STUB_DO='0: plog 1; 1: plog 2' ends 0 '*' launch_npu run_mpirun.sh -n 2 config.yaml
  [[ ! -e logs/latest/plog ]]
}

# bats test_tags=thorough
@test "msrun: the same folders, the same rules" {
  need_mindspore
  HCCN=()
  PYTHONPATH=$FIXTURES/quick_msrun
  STUB_DO='0: plog 1; 1: plog 2, await 0, exit 3' ends 3 '*' launch_npu run_msrun.sh --worker_num 2 config.yaml
  [[ "$(plogs logs/latest/plog | wc -l)" = 2 ]]
  [[ "$(launch_json 'r["outcome"]["members"]["1"]["pid"]')" = "$(recorded rank_1 'r["pid"]')" ]]
  STUB_DO='0: plog 1; 1: plog 2' ends 0 '*' launch_npu run_msrun.sh --worker_num 2 config.yaml
  [[ ! -e logs/latest/plog ]]
}

# on_hosts ARGUMENT...: ranks on hosts of the lab, of which the second does not see the folder of the run.
on_hosts() {
  need mpirun ssh
  HCCN=()
  lab_up 2
  "$LAB_SH" root 1 mount -t tmpfs tmpfs "$WORLD"
  on 1 cp "$PROJECT/configs/mnist/lenet5_digits.yaml" config.yaml
}

# launched_on_hosts ARGUMENT...: from the first host.
launched_on_hosts() {
  on 0 bash "$SCRIPTS/run_mpirun_1.sh" --device_target Ascend --no_check --train_script "$FIXTURES/stub_trainer.py" --config config.yaml "$@"
}

# bats test_tags=thorough
@test "a host that does not see the run's folder: the ERROR lines of a rank that failed come home" {
  on_hosts
  STUB_DO='0: plog 1; 1: plog 50, await 0, exit 3' ends 3 '*' launched_on_hosts node0:1,node1:1
  local -r log=$(printf '%s\n' logs/latest/plog/rank_1/debug/plog/*)
  [[ $log == */plog-"$(recorded rank_1 'r["pid"]')"_away.log ]] || fail "$log"
  [[ "$(sed 's/.*error //' "$log" | xargs)" = "$(seq -s ' ' 0 19) $(seq -s ' ' 30 49)" ]] || fail "$(<"$log")"
  [[ "$(launch_json 'r["outcome"]["members"]["1"]["pid"]')" = "$(recorded rank_1 'r["pid"]')" ]]
  [[ -e $(plog_of 0) ]]
  on 1 grep -rq 'error 25' "$(readlink -f logs/latest)/plog/rank_1"
}

# bats test_tags=thorough
@test "a host that does not see the run's folder: a rank that ended with 0 removes its plogs, unless all stay" {
  on_hosts
  STUB_DO='0: plog 1; 1: plog 1' ends 0 '*' launched_on_hosts node0:1,node1:1
  on 1 test -e "$(readlink -f logs/latest)/rank_1.log"
  on 1 test ! -e "$(readlink -f logs/latest)/plog"
  STUB_DO='0: plog 1; 1: plog 1' ends 0 '*' launched_on_hosts --keep_plogs all node0:1,node1:1
  on 1 test -e "$(readlink -f logs/latest)/plog/rank_1"
  STUB_DO='0: plog 1; 1: plog 1, await 0, exit 3' ends 3 '*' launched_on_hosts --keep_plogs none node0:1,node1:1
  on 1 test ! -e "$(readlink -f logs/latest)/plog"
  [[ ! -e logs/latest/plog ]]
}

# ---- the root among the ranks ----------------------------------------------------------------------------

# bats test_tags=slow
@test "the rank that others waited for is the root, not the one that ended first" {
  STUB_DO='0: link 3, await 1, await 2, await 3, exit 1; 1: link 3, await 3, tick 600; 2: link 3, await 3, tick 600; 3: plog 0, tick 600' \
    ends 1 '*' launch_npu ascend4p.sh config.yaml
  [[ $stderr == *'rank 0 (device 4) exited with code 1 '* ]] || fail "$stderr"
  local -r host=$(hostname)
  # Whose wait is the oldest depends on the second in which each began to write.
  [[ $stderr == *": rank 3 (host $host, device 7) never opened its socket; 3 ranks waited 120 s for it, rank "[012]" (host $host, device "[456]") first"* ]] || fail "$stderr"
  [[ $stderr == *"how sure: likely; its own log has no error"*"next: "*"hccn_tool -i 7 -link -g"* ]]
  [[ "$(launch_json 'r["outcome"]["diagnosis"]["root"]["ranks"]')" = '[3]' ]]
  launch_json_fits
  ends 0 '*read *' python "$PROJECT/tools/diagnose.py"
  [[ $output == *'rank 3 (host '*' never opened its socket'* ]]
}
