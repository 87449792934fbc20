#!/usr/bin/env bats
# --straggler and --metrics: the process beside the launcher, whatever happens to the job, to the launcher and to it.

# bats file_tags=thorough
load ../helper
load ../lab/lab

readonly SLOW='rank 1 (device 1 of *) takes 2.0 times as long as the median rank for *(40 ms against 20 ms a step)'
readonly WAS_SLOW='slow: rank 1 (device 1 of *) took 2.0 times as long as the median rank for *'

setup() {
  setup_world
}

teardown() {
  lab_down
  end_left_over
}

# says TEXT: whether it is on the launcher's stderr.
says() {
  grep -qF -- "$1" "$BATS_TEST_TMPDIR/stderr"
}

# metric NAME [LABEL]: its value in m.prom; of several those with LABEL.
metric() {
  grep -F -- "mindspore_launch_$1{" m.prom | grep -F -- "${2-}" | sed 's/.* //'
}

# metric_is NAME VALUE [LABEL]
metric_is() {
  [[ $(metric "$1" "${3-}") == "$2" ]]
}

# beside: the process that measures.
beside() {
  pgrep -P "$LAUNCHER" -f mindspore-launch-metrics
}

@test "--straggler: a slow rank is named once while the job runs, then in the report and in launch.json, also with --quiet" {
  launch_ranks '0: steps 400 20; 1: steps 5000 40; 2: steps 400 20' launch.sh -n 3 --quiet --straggler 1.5 config.yaml
  eventually says 'rank 1 (device 1 of '
  end_by TERM 143 "*$SLOW*$WAS_SLOW*"
  [[ $(grep -c 'takes 2.0 times' <<<"$stderr") == 1 ]] || fail "$stderr"
  [[ "$(launch_json '[(s["rank"], s["device"], s["kind"], s["factor"]) for s in r["outcome"]["stragglers"]]')" = "[(1, 1, 'step', 2.0)]" ]]
  [[ ! -e logs/latest/stragglers.json ]]
  [[ "$(recorded rank_0 'r["env"]["LAUNCH_STRAGGLER"]')" = 1.5 ]]
}

@test "--straggler: the report has it when the job ends well, and when the process was killed" {
  launch_ranks '0: steps 9000 20, exit 9; 1: steps 200 40, await 7; 2: await 7; 3: steps 400 20, await 7' ascend4p.sh --device_target CPU --devices '[0,4)' --straggler 1.5 --keep_going config.yaml
  eventually says 'rank 1 (device 1 of '
  kill -KILL "$(beside)"
  kill -KILL "$(recorded rank_0 'r["pid"]')"
  touch "$STUB_OUT/rank_7.json"
  ended 137 "*the process of --straggler and --metrics was ended before the job; its output may be outdated*$WAS_SLOW*"
}

@test "--metrics: ranks up while the job runs; by SIGTERM the last state is in the file" {
  launch_ranks '0: steps 9000 20; 1: steps 9000 20' ascend2p.sh --metrics m.prom config.yaml
  eventually metric_is ranks_up 2
  metric_is running 1
  [[ -z $(metric exit_code) && $(stat -c %a m.prom) == 644 ]]
  eventually eval '[[ -n $(metric rank_step rank=\"1\") ]]'
  end_by TERM 143
  metric_is exit_code 143 && metric_is running 0 && metric_is ranks_up 0 && metric_is rank_step_seconds 0.02 'rank="1"'
  [[ -n $(metric end_time_seconds) && $(ls) != *.part* ]]
  [[ "$(recorded rank_0 '"LAUNCH_STRAGGLER" in r["env"]')" = False ]]
}

@test "--metrics: who failed last, restarts and the exit code; the file of an earlier run is replaced" {
  printf '# mindspore_launch metrics, run an-earlier-one\nold 1\n' >m.prom
  STUB_DO='0: wait; 1: first exit 3, exit 4' ends 4 '*' launch ascend2p.sh --metrics m.prom --max_restarts 1 --grace 1 config.yaml
  metric_is restarts_total 1 && metric_is exit_code 4
  grep -F 'mindspore_launch_last_failure_info{' m.prom | grep -qE 'rank="1".*exit_code="4",attempt="1"'
  [[ "$(<m.prom)" != *old* ]]
}

@test "--metrics FILE.jsonl: a line at the start, at a failure and at the end is added to those of earlier runs" {
  STUB_DO='1: exit 5' ends 5 '*' launch ascend2p.sh --metrics m.jsonl config.yaml
  STUB_DO='' ends 0 '*' launch ascend2p.sh --metrics m.jsonl config.yaml
  "$PYTHON" - <<'END'
import json
lines = [json.loads(line) for line in open("m.jsonl")]
ends = [line for line in lines if not line["running"]]
assert [line["exit_code"] for line in ends] == [5, 0], lines
assert ends[0]["last_failure_info"]["rank"] == "1" and ends[0]["info"]["script"] == "ascend2p.sh"
END
}

@test "SIGKILL of the launcher: the process is gone, and the file stays as it was" {
  local how
  for how in one group stopped; do
    rm -f "$STUB_OUT"/* m.prom
    launch_ranks '0: wait; 1: wait' ascend2p.sh --straggler 2 --metrics m.prom config.yaml
    eventually metric_is ranks_up 2
    dies_with_launcher "$how" "$(beside)"
    metric_is running 1
  done
}

@test "it holds no pipe of the launcher, ranks have none of its own, and SIGSTOP or a batch system's SIGTERM do not matter" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --metrics m.prom config.yaml
  eventually metric_is ranks_up 2
  shares_no_pipe "$(beside)"
  local pipe pid
  pipe=$(readlink "/proc/$(beside)/fd/0")
  pid=$(recorded rank_0 'r["pid"]')
  [[ "$(find "/proc/$pid/fd" -mindepth 1 -printf '%l\n')" != *"$pipe"* ]]
  kill -TERM "$(beside)"
  kill -STOP "$(beside)"
  end_by TERM 143
  metric_is exit_code 143 # the last state is written all the same
  [[ "$(launch_json 'sorted(r["outcome"]["members"])')" = "['0', '1', 'scheduler']" ]]
}

@test "nobody reads stderr, and the folder of the metrics vanishes: the job goes on" {
  mkdir there
  export STUB_DO='0: steps 9000 20; 1: steps 9000 20'
  stubbed ascend2p.sh --device_target CPU --straggler 1.5 --metrics there/m.prom config.yaml
  set -m
  "${STUBBED[@]}" >/dev/null 2> >(read -r _) 3>&- &
  LAUNCHER=$!
  set +m
  eventually test -s there/m.prom
  rm -r there
  eventually ranks_up 0 1
  kill -TERM "$LAUNCHER"
  eventually gone "$LAUNCHER"
  eventually nobody_left
}

@test "without these options no such process starts, and nothing is written" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh config.yaml
  [[ -z $(beside) ]]
  end_by TERM 143
  [[ "$(launch_json '"stragglers" in r["outcome"], "LAUNCH_STRAGGLER" in r["exports"]')" = '(False, False)' ]]
}

@test "refused: a factor that is none, and a file that is not ours, before anything starts" {
  local factor
  for factor in 1 0 nan 1e3 two; do
    refused 2 "*--straggler $factor: write how many times the median a step may take, a number above 1 such as 1.5" launch ascend2p.sh --straggler "$factor" config.yaml
  done
  printf 'mine\n' >mine.prom
  mkfifo pipe.prom
  refused 2 '*--metrics mine.prom: the file exists and has no metrics of a launch; name another one, or remove it' launch ascend2p.sh --metrics mine.prom config.yaml
  refused 2 '*--metrics pipe.prom: it is not a regular file; name another one' launch ascend2p.sh --metrics pipe.prom config.yaml
  refused 2 '*--metrics .: it is not a regular file; name another one' launch ascend2p.sh --metrics . config.yaml
  refused 2 '*--metrics none/m.prom: there is no folder */none; make it, or name another file' launch ascend2p.sh --metrics none/m.prom config.yaml
  [[ "$(<mine.prom)" = mine ]]
}

@test "--dry_run checks both and writes nothing" {
  ends 0 '*' launch ascend2p.sh --dry_run --straggler 1.5 --metrics m.prom config.yaml
  [[ ! -e m.prom && $output == *LAUNCH_STRAGGLER=1.5* ]]
  ends 2 '*--straggler 1: *' launch ascend2p.sh --dry_run --straggler 1 config.yaml
}

@test "mpirun: ranks up, and slow ranks by their logs" {
  need mpirun
  HCCN=()
  launch_ranks '0: steps 9000 20; 1: steps 9000 40; 2: steps 9000 20' run_mpirun.sh -n 3 --straggler 1.5 --metrics m.prom config.yaml
  eventually metric_is ranks_up 3
  eventually says 'rank 1 (device 1 of '
  end_by TERM 143 "*$WAS_SLOW*"
  metric_is exit_code 143 && metric_is stragglers 1
}

@test "msrun: the same" {
  need_mindspore
  HCCN=()
  export PYTHONPATH=$FIXTURES/quick_msrun # the real msrun; its trainers are stubs
  launch_ranks '0: steps 9000 20; 1: steps 9000 20' run_msrun.sh --worker_num 2 --metrics m.prom config.yaml
  eventually metric_is ranks_up 2
  end_by TERM 143
  metric_is exit_code 143
}

@test "mpirun on two hosts, one without the run's folder: its ranks are unseen, and the launcher says so once" {
  need mpirun ssh
  HCCN=()
  lab_up 2
  "$LAB_SH" root 1 mount -t tmpfs tmpfs "$WORLD"
  on 1 cp "$PROJECT/configs/mnist/lenet5_digits.yaml" config.yaml
  export STUB_DO='0: steps 400 20; 1: steps 200 40; 2: steps 400 20; 3: steps 400 20'
  ends 0 '*rank 1 (device 1 of node0) takes 2.0 times *slow: rank 1 (device 1 of node0) took *' \
    on 0 bash "$SCRIPTS/run_mpirun_1.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" --config config.yaml \
    --straggler 1.5 --metrics m.prom node0:2,node1:2
  [[ $(grep -c -- '--straggler does not see ranks 2,3: no log here has their numbers' <<<"$stderr") == 1 ]] || fail "$stderr"
  metric_is ranks_expected 4 && metric_is ranks_unseen 2 && metric_is ranks_up 0 && metric_is rank_up 0 'rank="1",host="node0"'
  [[ -z $(metric rank_up 'host="node1"') ]]
}

# free_port: one at which nobody listens just now
free_port() {
  python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# page PATH: the status and the content of the launcher's page at $PORT
page() {
  python - "$PORT" "$1" <<'PY'
import sys, urllib.error, urllib.request

url = f"http://127.0.0.1:{sys.argv[1]}{sys.argv[2]}"
try:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=30) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
PY
}

# page_has PATH PATTERN
page_has() {
  # shellcheck disable=SC2053 # a pattern is meant
  [[ $(page "$1") == $2 ]]
}

@test "--metrics :PORT: Prometheus gets the numbers, /healthz says that the job moves and then that it stands still" {
  PORT=$(free_port)
  launch_ranks '0: steps 150 20, wait; 1: steps 150 20, wait' ascend2p.sh --metrics "127.0.0.1:$PORT" --stall_timeout 3 config.yaml
  eventually page_has /healthz '200 {"state": "running"*'
  eventually page_has /metrics $'200 *mindspore_launch_ranks_up{*} 2\n*mindspore_launch_rank_step{*'
  eventually page_has /healthz '503 {"state": "stalled"*'
  end_by TERM 143
  ! page / 2>/dev/null || fail "it still answers"
}

@test "--metrics :PORT: one that is taken, or no port, is refused; another name is a file" {
  refused 2 'ascend2p.sh: --metrics :0: a port is a number from 1 to 65535' launch ascend2p.sh --metrics :0 config.yaml
  refused 2 'ascend2p.sh: --stall_timeout is for /healthz; add --metrics :PORT*' launch ascend2p.sh --stall_timeout 5m config.yaml
  refused 2 'ascend2p.sh: --stall_timeout 0: *' launch ascend2p.sh --metrics :9100 --stall_timeout 0 config.yaml
}

@test "--metrics :PORT: the process may be stopped or killed, and the job goes on" {
  PORT=$(free_port)
  launch_ranks '0: usr1; 1: usr1' ascend2p.sh --metrics ":$PORT" config.yaml
  eventually page_has /healthz '200 *"no step yet"*'
  shares_no_pipe "$(beside)"
  kill -KILL "$(beside)"
  end_by USR1 0 '*the process of --straggler and --metrics was ended before the job*'
}
