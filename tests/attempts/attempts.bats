#!/usr/bin/env bats
# --max_restarts where the command is typed on each host: the launchers agree on every attempt.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  setup_world
  mkdir data
  HCCN=()
  export STUB_SCHEDULER_EXIT=0
  PIDS=()
}

teardown() {
  lab_down
  end_left_over
}

# table [SERVER SERVER]: hccl.json with two devices on each of two servers; no two tables of the tests are the same, because
# the ports follow from it
table() {
  python - "${@:-127.0.0.2 127.0.0.3}" >hccl.json <<'PY'
import json, random, sys
servers = [
    {"server_id": name, "device": [
        {"device_id": str(d), "device_ip": f"10.78.{n}.{d + 1}", "rank_id": str(2 * n + d)} for d in range(2)]}
    for n, name in enumerate(" ".join(sys.argv[1:]).split())
]
table = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
print(json.dumps(table) + "".join(random.choices(" \n", k=32)))
PY
}

# typed HOST WORD...: the command of host number HOST in the background, with logs and messages of its own
typed() {
  local -r host=$1
  shift
  stubbed run_cluster.sh --device_target CPU --config config.yaml --log_dir "logs$host" "$@" data hccl.json 4 $((2 * host))
  : >"stderr$host"
  set -m
  "${STUBBED[@]}" >"stdout$host" 2>"stderr$host" 3>&- &
  set +m
  PIDS[host]=$!
}

# host_ended HOST STATUS PATTERN: its command has ended so, with messages that fit
host_ended() {
  eventually gone "${PIDS[$1]}"
  status=0
  wait "${PIDS[$1]}" || status=$?
  stderr=$(<"stderr$1")
  was "$2" "$3"
}

# says HOST TEXT: its messages have the text
says() {
  grep -qF -- "$2" "stderr$1"
}

# running WHAT: both commands, with ranks that do WHAT, all of which run
running() {
  export STUB_DO=$1
  table
  typed 1 "${@:2}"
  typed 0 "${@:2}"
  eventually ranks_up 0 1 2 3
}

readonly WAIT='0: wait; 1: wait; 2: wait; 3: wait'

# port: where the launchers meet
port() {
  python - hccl.json <<'PY'
import hashlib, sys
print(10000 + int(hashlib.sha256(open(sys.argv[1], "rb").read()).hexdigest(), 16) % 20000 + 1)
PY
}

# listens PORT: whether somebody listens there
listens() {
  grep -q ":$(printf %04X "$1") 00000000:0000 0A" /proc/net/tcp
}

agreeing() {
  pgrep -f mindspore-launch-hosts | xargs -rI{} grep -lszxF "TEST_MARK=$TEST_MARK" /proc/{}/environ
}

@test "a rank fails on one host: both hosts end the attempt and begin the next together, and the job ends with 0" {
  running '0: first wait; 1: first wait; 2: first wait; 3: first await 0 1 2, first exit 7' --max_restarts 2
  host_ended 0 0 '*: 127.0.0.3: rank 3 (device 1) exited with code 7 after * s; stopping the ranks of this host*restart 1 of 2 in 1 s*: exit 0;*'
  host_ended 1 0 '*: rank 3 (device 1) exited with code 7 after *; stopping the other rank*restart 1 of 2 in 1 s*: exit 0;*'
  [[ -e logs0/latest/restart_1/rank_0.log && -e logs1/latest/restart_1/rank_3.log && ! -e logs1/latest/restart_2 ]]
  ln -s logs0 logs
  [[ "$(launch_json '[(a["exit"], a["stopped_by"], a["first_failure"]) for a in r["outcome"]["attempts"]]')" = "[(7, '127.0.0.3', None)]" ]]
  [[ -z $(agreeing) ]]
}

@test "the number of restarts is that of the job: whichever host fails, and all hosts have the code of the last failure" {
  running '0: first wait; 1: wait; 2: await 0 1 3, exit 5; 3: wait' --max_restarts 1
  host_ended 0 5 '*127.0.0.3: rank 2 *restart 1 of 1 *127.0.0.3: rank 2 (device 0) exited with code 5 *: exit 5;*'
  host_ended 1 5 '*restart 1 of 1 *2 * 5, failed first *: exit 5;*'
  [[ $stderr != *'restart 2'* && ! -e logs0/latest/restart_2 ]]
}

# progresses: train.py, whose rank 3 fails after each of the steps 2, 4 and 4; only ranks of the second host print them
progresses() {
  cat >train.py <<'PY'
import os, sys, time

rank = int(os.environ["RANK_ID"])
if rank == 3:
    number = len(open("attempts").read()) if os.path.exists("attempts") else 0
    open("attempts", "a").write("x")
    for step in range(1, [3, 5, 5, 5][number]):
        print(f"epoch: 1 step: {step}, loss is 0.5", flush=True)
    sys.exit(7 + number)
time.sleep(600)
PY
}

@test "how far the job came on any host counts for all: a restart that helped does not count, the next one is in vain" {
  table
  progresses
  typed 1 --max_restarts 1 --train_script train.py
  typed 0 --max_restarts 1 --train_script train.py
  host_ended 0 9 '*restart 1 of 1 in 1 s*restart 1 of 1 in 1 s*no further step after 1 restart, the most that --max_restarts allows; the job ends*: exit 9;*'
  host_ended 1 9 '*restart 1 of 1 in 1 s*restart 1 of 1 in 1 s*no further step after 1 restart, the most that --max_restarts allows; the job ends*: exit 9;*'
  ln -s logs0 logs
  [[ "$(launch_json '[a["progress"]["counted"] for a in [*r["outcome"]["attempts"], r["outcome"]]]')" = '[False, False, True]' ]]
}

@test "a rank of one host that dies three times of the same ends the job on all hosts" {
  table
  progresses
  sed -i -e 's/\[3, 5, 5, 5\]/([3] * 9)/' -e 's/7 + number/7/' train.py
  typed 1 --max_restarts 9 --train_script train.py
  typed 0 --max_restarts 9 --train_script train.py
  host_ended 0 7 '*: rank 3 (device 1) died at step 2 of epoch 1 with the same error in three attempts (1, 2, 3): exit code 7; the job ends*: exit 7;*'
  host_ended 1 7 '*: rank 3 (device 1) died at step 2 of epoch 1 with the same error in three attempts (1, 2, 3): exit code 7; the job ends*: exit 7;*'
}

@test "both hosts fail in the same attempt: that is one restart" {
  running '0: first await 1 2 3, first exit 3; 1: wait; 2: first await 0 1 3, first exit 4; 3: wait' --max_restarts 3
  eventually says 0 'restart 1 of 3'
  eventually says 1 'restart 1 of 3'
  eventually test -s logs0/latest/restart_1/rank_1.env
  eventually test -s logs1/latest/restart_1/rank_3.env
  kill -TERM "${PIDS[0]}"
  host_ended 0 143 '*SIGTERM: stopping all ranks*'
  host_ended 1 143 '*127.0.0.2: SIGTERM has stopped its launcher; stopping the ranks of this host*'
  [[ $stderr != *'restart 2'* ]]
}

@test "ranks that have all ended with 0 start again with those of the host that fails later" {
  running '0: await 3; 1: await 3; 2: first tick 10, first exit 9; 3: tick 1' --max_restarts 1
  host_ended 1 0 '*rank 2 (device 0) exited with code 9*restart 1 of 1*'
  host_ended 0 0 '*127.0.0.3: rank 2 (device 0) exited with code 9 after * s'$'\n''*restart 1 of 1*'
  [[ -e logs0/latest/restart_1/rank_0.log ]]
}

@test "Ctrl-C on one host ends the job on all, without a restart; also while hosts wait for each other" {
  running "$WAIT" --max_restarts 3
  kill -INT "${PIDS[1]}"
  host_ended 1 130 '*SIGINT: stopping all ranks*'
  host_ended 0 130 '*127.0.0.3: SIGINT has stopped its launcher; stopping the ranks of this host*143 SIGTERM, stopped by us*: exit 130*'
  [[ $stderr != *restart\ 1* ]]
  table
  typed 0 --max_restarts 3
  eventually listens "$(port)"
  kill -INT "${PIDS[0]}"
  host_ended 0 130 '*'
}

@test "a signal during the pause before a restart ends the job on all hosts" {
  # on a busy machine the pause may be over when the signal comes: then it ends an attempt that runs
  running '0: wait; 1: once exit 3, once exit 4, wait; 2: wait; 3: wait' --max_restarts 9
  eventually says 1 'restart 2 of 9 in 2 s'
  kill -TERM "${PIDS[1]}"
  host_ended 1 143 '*'
  host_ended 0 143 '*127.0.0.3: SIGTERM has stopped its launcher*'
}

@test "a signal during the pause before a restart: no rank runs, and the attempt that failed is the last one" {
  export STUB_DO='1: exit 7; 0: wait'
  launch_behind ascend2p.sh --max_restarts 9 config.yaml
  eventually grep -q 'restart 3 of 9 in 4 s' "$BATS_TEST_TMPDIR/stderr"
  kill -TERM "$LAUNCHER"
  ended 143 '*restart 3 of 9 in 4 s'$'\n''ascend2p.sh: SIGTERM: no rank runs; the job ends'$'\n''ascend2p.sh: exit 143; *'
  [[ $(launch_json '[(a["logs"], a["exit"], a["first_failure"], a["stopped_by"], len(a["members"])) for a in [*r["outcome"]["attempts"], r["outcome"]]]') == "[('.', 7, '1', None, 3), ('./restart_1', 7, '1', None, 3), ('./restart_2', 143, '1', 'SIGTERM', 3)]" ]] || fail "$(<logs/latest/launch.json)"
  launch_json_fits
  ends 0 '' python "$PROJECT/tools/diagnose.py" logs/latest
  [[ $output == *'rank 1 '*'failed first: exit status 7; '*restart_2/rank_1.log* ]] || fail "$output"
}

@test "the --timeout of one host ends the job on all" {
  export STUB_DO=$WAIT
  table
  typed 0 --max_restarts 3
  eventually listens "$(port)"
  typed 1 --max_restarts 3 --timeout 8 # its limit also counts until it has met the other host
  host_ended 1 124 '*its --timeout: stopping all ranks*'
  host_ended 0 124 '*127.0.0.3: its --timeout is reached; stopping the ranks of this host*'
}

@test "SIGKILL of the launcher of one host: the other ends, and names it" {
  running "$WAIT" --max_restarts 3 --grace 1
  kill -KILL "${PIDS[1]}"
  host_ended 0 255 '*127.0.0.3: its launcher is disconnected: *; stopping the ranks of this host*: exit 255;*'
  eventually nobody_left
}

@test "SIGKILL of the launcher of rank 0's host: the others end, and name it" {
  running "$WAIT" --max_restarts 3 --grace 1
  kill -KILL "${PIDS[0]}"
  host_ended 1 255 '*127.0.0.2: its launcher is disconnected: *; stopping the ranks of this host*: exit 255;*'
  eventually nobody_left
}

@test "somebody kills the process that speaks with the other hosts: the job ends on all hosts" {
  running "$WAIT" --max_restarts 3 --grace 1
  pkill -KILL -P "${PIDS[1]}" -f mindspore-launch-hosts
  host_ended 0 255 '*127.0.0.3: its launcher is disconnected: *'
  host_ended 1 255 '*the process that speaks with the other hosts was killed*'
}

@test "somebody stops that process: it goes on" {
  running '0: wait; 1: wait; 2: wait; 3: first await 0 1 2, first tick 10, first exit 7' --max_restarts 1 --timeout 40
  pkill -STOP -P "${PIDS[1]}" -f mindspore-launch-hosts
  eventually says 0 'restart 1 of 1'
  kill -TERM "${PIDS[0]}"
  host_ended 0 143 '*'
  host_ended 1 143 '*'
}

@test "a host that comes later: no rank starts before, and the first says for whom it waits" {
  table
  typed 0 --max_restarts 1
  eventually says 0 'waiting for 127.0.0.3: 1 of 2 hosts'
  [[ -z "$(ls "$STUB_OUT")" ]]
  typed 1 --max_restarts 1
  host_ended 0 0 '*'
  host_ended 1 0 '*'
  ranks_up 0 1 2 3
}

@test "a host that never comes: the job ends in the time of MS_TOPO_TIMEOUT, with its name" {
  export MS_TOPO_TIMEOUT=2
  table
  typed 0 --max_restarts 1
  host_ended 0 78 '*127.0.0.3: is not ready after 2 s (127.0.0.3: 1 of 2 hosts)*: exit 78;*'
  typed 1 --max_restarts 1
  host_ended 1 78 "*127.0.0.2: nobody answers at 127.0.0.2 port $(port) after 2 s (Connection refused); type the command there, too, *"
  [[ -z "$(ls "$STUB_OUT")" ]]
}

@test "another --max_restarts, command or config is refused with both in words; the right command is still waited for" {
  table
  typed 0 --max_restarts 3
  typed 1 --max_restarts 2
  host_ended 1 78 '*127.0.0.2: --max_restarts: 127.0.0.2 has 3, 127.0.0.3 has 2; it must be the same on every host*'
  eventually says 0 '--max_restarts: 127.0.0.2 has 3, 127.0.0.3 has 2; it must be the same on every host'
  typed 1 --max_restarts 3 --train_script "$FIXTURES/one_weight.py"
  host_ended 1 78 '*the command: 127.0.0.2 has python -u tests/fixtures/stub_trainer.py --config config.yaml, 127.0.0.3 has python -u tests/fixtures/one_weight.py *'
  printf '# more\n' >>config.yaml
  typed 1 --max_restarts 3
  host_ended 1 78 '*the config config.yaml: 127.0.0.2 has sha256 *, 127.0.0.3 has sha256 *'
  printf 'system:\n  distribute: True\n' >config.yaml
  typed 1 --max_restarts 3
  host_ended 0 0 '*'
  host_ended 1 0 '*'
}

@test "other rank tables at the same port are another job" {
  export MS_SCHED_PORT
  table
  MS_SCHED_PORT=$(($(port) - 1))
  typed 0 --max_restarts 1
  eventually listens "$(port)"
  table
  typed 1 --max_restarts 1
  host_ended 1 78 '*127.0.0.2: another job is there; or the rank tables, the numbers of ranks or the versions of this project differ*'
  kill -TERM "${PIDS[0]}"
  host_ended 0 143 '*'
}

@test "the port is in use: refused in one line" {
  table
  python -c 'import signal, socket, sys
taken = socket.create_server(("127.0.0.2", int(sys.argv[1])))
print("taken", flush=True)
signal.pause()' "$(port)" >taken 3>&- &
  eventually test -s taken
  refused 78 "run_cluster.sh: --max_restarts: the launcher cannot listen at 127.0.0.2 port $(port) for the other hosts: Address already in use; *" \
    launch run_cluster.sh --config config.yaml --max_restarts 1 data hccl.json 4 0
  kill "$!"
}

@test "without --max_restarts nothing listens, and with it nothing any more once all hosts have come" {
  running "$WAIT"
  [[ -z $(agreeing) ]]
  run ! listens "$(port)"
  kill -TERM "${PIDS[@]}"
  host_ended 0 143 '*'
  host_ended 1 143 '*'
  rm "$STUB_OUT"/*
  running "$WAIT" --max_restarts 1
  [[ -n $(agreeing) ]]
  run ! listens "$(port)"
  kill -TERM "${PIDS[0]}"
  host_ended 0 143 '*'
  host_ended 1 143 '*'
}

# ---- test hosts ------------------------------------------------------------------------------------------------------------

# on_both WORD...: the command on both hosts of the lab, in the background
on_both() {
  local host
  for host in 1 0; do
    : >"stderr$host"
    set -m
    timeout -k 5 300 "$LAB_SH" run "$host" bash "$SCRIPTS/run_cluster.sh" --device_target CPU --log_dir "logs$host" "$@" \
      data hccl.json "${#RANKS[@]}" $((host * ${#RANKS[@]} / 2)) >"stdout$host" 2>"stderr$host" 3>&- &
    set +m
    PIDS[host]=$!
  done
}

@test "lab: the cable of a host is cut: both end, and each names the other" {
  lab_up 2
  table 10.77.0.1 10.77.0.2
  export STUB_DO=$WAIT
  RANKS=(0 1 2 3)
  on_both --config config.yaml --train_script "$FIXTURES/stub_trainer.py" --max_restarts 3
  eventually ranks_up "${RANKS[@]}"
  "$LAB_SH" link 1 down
  host_ended 0 255 '*: 10.77.0.2: its launcher is disconnected: *; stopping the ranks of this host*'
  host_ended 1 255 '*: 10.77.0.1: its launcher is disconnected: *; stopping the ranks of this host*'
}

# dies.py: one_weight.py, whose rank 1 is killed in the first attempt, when the ranks have met
dies() {
  cat >dies.py <<PY
import os, runpy, signal

from mindspore import communication

init = communication.init


def init_and_die():
    init()
    if os.environ["RANK_ID"] == "1" and "RESUME" not in os.environ:
        os.kill(os.getpid(), signal.SIGKILL)


communication.init = init_and_die
runpy.run_path("$FIXTURES/one_weight.py", run_name="__main__")
PY
}

# bats test_tags=trains
@test "lab: real MindSpore: a rank of the second host is killed; both hosts start again, once, together, and train" {
  need_mindspore
  lab_up 2
  table 10.77.0.1 10.77.0.2
  python - <<'PY'
import json

with open("hccl.json") as file:
    table = json.load(file)
for number, server in enumerate(table["server_list"]):
    server["device"] = [{**server["device"][0], "rank_id": str(number)}]
with open("hccl.json", "w") as file:
    json.dump(table, file)
PY
  dies
  RANKS=(0 1)
  on_both --max_restarts 2 --import_once=mindspore --train_script dies.py
  timeout 300 tail --pid="${PIDS[1]}" -f /dev/null # real ranks take their time where others have the processors
  host_ended 1 0 '*rank 1 (device 0) was ended by SIGKILL after *restart 1 of 2 in 1 s*'
  [[ $stderr != *'restart 2'* ]] || fail "$stderr"
  host_ended 0 0 '*: 10.77.0.2: rank 1 (device 0) was ended by SIGKILL after * s; stopping the ranks of this host*restart 1 of 2 in 1 s*'
  [[ $stderr != *'restart 2'* ]] || fail "$stderr"
  fitted_alike 2 logs0/latest/restart_1/rank_0.log logs1/latest/restart_1/rank_1.log
}

# msrun_on HOST WORD...: the same job by msrun, in the background; the trainers are stubs
msrun_on() {
  local -r host=$1
  shift
  : >"stderr$host"
  set -m
  timeout -k 5 300 "$LAB_SH" run "$host" bash "$SCRIPTS/run_msrun.sh" --device_target CPU --worker_num 4 --local_worker_num 2 \
    --master_addr 10.77.0.1 --node_rank "$host" --log_dir "logs$host" --train_script "$FIXTURES/stub_trainer.py" "$@" \
    config.yaml >"stdout$host" 2>"stderr$host" 3>&- &
  set +m
  PIDS[host]=$!
}

@test "lab: run_msrun.sh: a rank fails on one host, both start again; another --max_restarts, and no restart left" {
  need_mindspore
  lab_up 2
  PYTHONPATH=$FIXTURES/quick_msrun # the real msrun; its trainers are stubs
  export PYTHONPATH STUB_DO='0: first wait; 1: first wait; 2: first wait; 3: first await 0 1 2, first exit 7'
  msrun_on 0 --max_restarts 1
  msrun_on 1 --max_restarts 2
  host_ended 1 78 '*--node_rank=0: --max_restarts: --node_rank=0 has 1, --node_rank=1 has 2; it must be the same on every host*'
  msrun_on 1 --max_restarts 1
  host_ended 1 0 '*: rank 3 (device 1) exited with code 7 *restart 1 of 1 in 1 s*: exit 0;*'
  host_ended 0 0 '*: --node_rank=1: rank 3 (device 1) exited with code 7 after * s; stopping the ranks of this host*restart 1 of 1 *: exit 0;*'
  rm "$STUB_OUT"/*
  STUB_DO='0: wait; 1: wait; 2: wait; 3: await 0 1 2, exit 7'
  msrun_on 0 --max_restarts 1
  msrun_on 1 --max_restarts 1
  host_ended 0 7 '*restart 1 of 1 *: exit 7;*'
  host_ended 1 7 '*restart 1 of 1 *: exit 7;*'
}
