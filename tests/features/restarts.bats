#!/usr/bin/env bats
# Restarts that stop when they do not help, and begin when nothing of the last attempt is left.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  setup_world
  unset PYTHONPATH # no scheduler, and none is needed
}

teardown() {
  lab_down
  end_left_over
}

# program WORD...: launch.sh, whose program is not the stub trainer
program() {
  bash "$SCRIPTS/launch.sh" --device_target CPU "$@"
}

# trains STEPS...: train.py, whose rank 1 fails after the next of these steps in each attempt, and ends well after the last.
# An attempt begins one step before the end of the last one.  FAILS: what it raises, by default always the same.
trains() {
  [[ -n ${FAILS-} ]] || local FAILS='raise ValueError("no luck")'
  cat >train.py <<PY
import os, sys, time

ends = [int(word) for word in "$*".split()]
if os.environ["RANK_ID"] == "0":
    while not os.path.exists("done"):
        time.sleep(0.01)
    sys.exit()
number = len(open("attempts").read()) if os.path.exists("attempts") else 0
open("attempts", "a").write("x")
for step in range(ends[number - 1] if number else 1, ends[number] + 1):
    print(f"epoch: 1 step: {step}, loss is 0.5", flush=True)
if number < len(ends) - 1:
    $FAILS
open("done", "w").close()
PY
}

# made WHAT: what launch.json has of each attempt, as a list
made() {
  launch_json "[a['progress'].get('$1') for a in [*r['outcome'].get('attempts', []), r['outcome']]]"
}

@test "restarts that bring the job further do not count: five of them with --max_restarts 1" {
  trains 3 5 8 9 12 14
  ends 0 '*restart 1 of 1 in 1 s*restart 1 made progress, from step 3 to step 5: --max_restarts counts from 0 again*restart 1 of 1 in 1 s*: exit 0;*' \
    program -n 2 --max_restarts 1 ./train.py
  [[ "$(made reached)" = '[3, 5, 8, 9, 12, 14]' ]] || fail "$(made reached)"
  [[ "$(made steps)" = '[3, 3, 4, 2, 4, 3]' ]] || fail "$(made steps)"
  [[ "$(made counted)" = '[False, False, False, False, False, False]' ]]
  [[ $stderr == *$'\n''attempt  steps  up to  without progress  why it ended'$'\n''1        3      3      no                rank 1 (device 1) exited with code 1 after '*'; ValueError: no luck'$'\n'*$'\n''6        3      14     no                ended well'$'\n'* ]] || fail "$stderr"
  launch_json_fits
}

@test "restarts in vain end the job, and count anew after one that helped" {
  FAILS='sys.exit(number + 3)' trains 3 3 5 5 5 9
  ends 7 '*restart 1 of 2 in 1 s*restart 2 of 2 in 2 s*from step 3 to step 5*restart 1 of 2 in 1 s*restart 2 of 2 in 2 s*no further step after 2 restarts, the most that --max_restarts allows; the job ends*: exit 7;*' \
    program -n 2 --max_restarts 2 ./train.py
  [[ "$(made counted)" = '[False, True, False, True, True]' ]] || fail "$(made counted)"
  [[ "$(launch_json 'r["outcome"]["progress"]["no_restart"]')" = 'no further step after 2 restarts, the most that --max_restarts allows' ]]
  [[ $stderr == *$'\n''4        1      5      1 of 2            rank 1 '*$'\n''5 '*'2 of 2 '* ]] || fail "$stderr"
  launch_json_fits
}

@test "--restart_limit: the last of all restarts, although each of them has helped" {
  trains 3 5 8 9 12
  ends 1 '*the job has had 2 restarts, the most that --restart_limit allows; the job ends*: exit 1;*' \
    program -n 2 --max_restarts 1 --restart_limit 2 ./train.py
  [[ "$(made reached)" = '[3, 5, 8]' ]]
}

@test "a rank that dies at the same step of the same error three times ends the job, though restarts are left" {
  FAILS='raise RuntimeError(f"no memory at 0x{id(ends):x}, process {os.getpid()}")' trains 3 3 3 3 3 3
  ends 1 '*restart 2 of 9 *launch.sh: rank 1 (device 1) died at step 3 of epoch 1 with the same error in three attempts (1, 2, 3): RuntimeError: no memory at 0x*; the job ends*: exit 1;*' \
    program -n 2 --max_restarts 9 ./train.py
  [[ $stderr != *'restart 3'* ]]
  [[ "$(launch_json 'r["outcome"]["progress"]["no_restart"]')" == 'rank 1 (device 1) died at step 3 of epoch 1 with the same error in three attempts (1, 2, 3): RuntimeError: no memory'* ]]
  [[ "$(made place)" = "['at step 3 of epoch 1', 'at step 3 of epoch 1', 'at step 3 of epoch 1']" ]]
}

@test "one that dies so before its first step is one of them, where other attempts had steps" {
  trains 3 3 3 3 3 3
  sed -i 's/^for step in .*/for step in range(1, 0 if number else 4):/' train.py
  ends 1 '*died before its first step with the same error in three attempts (2, 3, 4): ValueError: no luck; the job ends*' \
    program -n 2 --max_restarts 9 ./train.py
  [[ "$(made steps)" = '[3, 0, 0, 0]' ]]
}

@test "three different errors at the same step do not" {
  FAILS='raise [ValueError, KeyError, OSError, ValueError][number]("no luck")' trains 3 3 3 3
  ends 0 '*restart 3 of 9 in 4 s*: exit 0;*' program -n 2 --max_restarts 9 ./train.py
  [[ "$(made error)" = "['ValueError: no luck', \"KeyError: 'no luck'\", 'OSError: no luck', None]" ]] || fail "$(made error)"
}

@test "a checkpoint that is further than all before counts as progress where no log has a step" {
  cat >saves.py <<'PY'
import os, sys

path = "attempts_" + os.environ["RANK_ID"]
open(path, "a").write("x")
number = len(open(path).read())
folder = sys.argv[sys.argv.index("--save") + 1]
os.makedirs(folder, exist_ok=True)
open(f"{folder}/net-1_{number * 10}.ckpt", "w").write("weights")
sys.exit(number < 4)
PY
  ends 0 '*restart 1 made progress, to the checkpoint weights/net-1_20.ckpt: *restart 1 of 1 in 1 s*restart 2 made *: exit 0;*' \
    program -n 1 --max_restarts 1 ./saves.py --save weights
  [[ "$(made steps)" = '[None, None, None, None]' ]]
}

# ---- what the last attempt has left ----------------------------------------------------------------------------------------

@test "a process that has left its group and forgotten its environment has ended before the next attempt" {
  FAILS='os.system("env -i setsid sleep 600 & echo $! >left"); raise ValueError("no luck")' trains 3 5
  ends 0 '*restart 1 of 1 in 1 s*: exit 0;*' program -n 2 --max_restarts 1 ./train.py
  gone "$(<left)"
}

# occupied: somebody else listens at the port of MindSpore's scheduler of the newest run, until `release` ends him
occupied() {
  env -u TEST_MARK python -c 'import json, signal, socket
exports = json.load(open("logs/latest/launch.json"))["exports"]
plug = socket.create_server((exports["MS_SCHED_HOST"], int(exports["MS_SCHED_PORT"])))
print("taken", flush=True)
signal.pause()' >taken 3>&- &
  OTHER=$!
  eventually test -s taken
}

release() {
  kill "$OTHER"
}

# failing: a job with a scheduler runs, and rank 1 fails as soon as the file go is there
failing() {
  export PYTHONPATH=$FIXTURES/stub_mindspore STUB_SCHEDULER_EXIT=0
  cat >waits.py <<'PY'
import os, sys, time

open("up_" + os.environ["RANK_ID"], "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
if "RESUME" not in os.environ and os.environ["RANK_ID"] == "1":
    sys.exit(9)
PY
  stubbed ascend2p.sh --device_target CPU "$@" config.yaml
  STUBBED[3]=$PWD/waits.py
  behind "${STUBBED[@]}"
  eventually test -e up_0 -a -e up_1
}

@test "a port of the last attempt is waited for, once and with who has it, then the job goes on" {
  failing --max_restarts 1
  occupied
  touch go
  eventually grep -q 'the restart waits, at most 120 s: port .* of MindSpore.s scheduler is in use (process .* listens there: ' "$BATS_TEST_TMPDIR/stderr"
  release
  ended 0 '*restart 1 of 1 in 1 s*the restart waits*everything that the restart waited for is free after * s*: exit 0;*'
  [[ $stderr != *'the restart waits'*'the restart waits'* ]]
}

@test "what is not free after --restart_wait ends the job with the code of the failure, who has it, and what to do" {
  failing --max_restarts 3 --restart_wait 2
  occupied
  touch go
  ended 9 "*no restart 1: after 2 s (--restart_wait) port * of MindSpore's scheduler is in use (process $OTHER listens there: *); look into it with: ss -ltnp 'sport = :*: exit 9;*"
  release
  [[ "$(launch_json 'r["outcome"]["exit"], "look into it with: ss" in r["outcome"]["progress"]["no_restart"]')" = '(9, True)' ]]
  [[ ! -e logs/latest/restart_1/rank_0.log ]]
  launch_json_fits
}

@test "Ctrl-C while a restart waits ends the job" {
  failing --max_restarts 3
  occupied
  touch go
  eventually grep -q 'the restart waits' "$BATS_TEST_TMPDIR/stderr"
  end_by INT 130 '*SIGINT: no rank runs; the job ends*'
  release
}

@test "--restart_wait 0 does not look" {
  failing --max_restarts 1 --restart_wait 0
  occupied
  touch go
  ended 0 '*: exit 0;*'
  release
  [[ $stderr != *'the restart waits'* ]]
}

# on_npus: simulated NPUs; rank 1 fails once the file go is there, after a restart it does not
on_npus() {
  export PATH=$FIXTURES/bin:$PATH NPU_SIM=$PWD/npus STUB_DO='0: first wait; 1: first await 0 go, first exit 9'
  mkdir npus
}

# held: somebody else holds device 1, and rank 1 fails
held() {
  env -u TEST_MARK sleep 600 3>&- &
  OTHER=$!
  printf '%s 30000 python\n' "$OTHER" >npus/held_1
  touch "$STUB_OUT/rank_go.json"
}

freed() {
  rm npus/held_1
  kill "$OTHER"
}

# fails_on_npus SCRIPT WORD...: the job, whose rank 1 has failed while somebody held device 1
fails_on_npus() {
  rm -rf "$STUB_OUT"
  mkdir "$STUB_OUT"
  behind bash "$SCRIPTS/$1" --no_check --train_script "$FIXTURES/stub_trainer.py" "${@:2}" config.yaml
  eventually ranks_up 0 1
  held
}

@test "NPUs: a process that npu-smi shows on a device of the job is waited for" {
  on_npus
  fails_on_npus ascend2p.sh "${HCCN[@]}" --max_restarts 1
  eventually grep -q "the restart waits, at most 120 s: process $OTHER holds device 1 (python, 30000 MB)" "$BATS_TEST_TMPDIR/stderr"
  freed
  ended 0 '*everything that the restart waited for is free after * s*: exit 0;*'
}

@test "NPUs: a process that holds a device when the time is over is named, with what to do" {
  on_npus
  fails_on_npus ascend2p.sh "${HCCN[@]}" --max_restarts 3 --restart_wait 2
  ended 9 "*no restart 1: after 2 s (--restart_wait) process $OTHER holds device 1 (python, 30000 MB); look into it with: kill -9 $OTHER*: exit 9;*"
  freed
}

@test "NPUs under mpirun: the agents of a host look at the devices of their ranks" {
  need mpirun
  on_npus
  fails_on_npus run_mpirun.sh -n 2 --max_restarts 1
  eventually grep -q "the restart waits, at most 120 s: .*process $OTHER holds device 1 (python, 30000 MB)" "$BATS_TEST_TMPDIR/stderr"
  freed
  ended 0 '*is free after * s*: exit 0;*'
  fails_on_npus run_mpirun.sh -n 2 --max_restarts 3 --restart_wait 2
  ended 78 "*no restart 2: after 2 s (--restart_wait) *process $OTHER holds device 1 (python, 30000 MB); kill -9 $OTHER*: exit 78;*"
  freed
}

@test "lab: agents end what an earlier attempt has left on another host, before their ranks start" {
  need mpirun ssh
  lab_up 2
  cat >leaves.py <<'PY'
import os, subprocess, sys, time

if os.environ["RANK_ID"] == "1" and "RESUME" not in os.environ:
    words = {name: os.environ[name] for name in ("LAUNCH_JOB", "PATH", "TEST_MARK") if name in os.environ}
    nap = subprocess.Popen(["sleep", "600"], env=words, start_new_session=True)
    open("left", "w").write(str(nap.pid))
    sys.exit(9)
if os.environ["RANK_ID"] == "1":
    with open("left") as file:
        path = f"/proc/{file.read()}/stat"
    print("left:", open(path).read().rpartition(")")[2].split()[0] if os.path.exists(path) else "nothing", flush=True)
elif "RESUME" not in os.environ:
    time.sleep(600)
PY
  behind on 0 bash "$SCRIPTS/run_mpirun_1.sh" --device_target CPU --train_script "$PWD/leaves.py" --config config.yaml \
    --grace 1 --max_restarts 1 node0:1,node1:1
  ended
  was 0 '*restart 1 of 1 in 1 s*: exit 0;*'
  grep -qE '^left: (nothing|Z)$' logs/latest/restart_1/rank_1.log || fail "$(<logs/latest/restart_1/rank_1.log)"
}

# ---- options ---------------------------------------------------------------------------------------------------------------

@test "options about restarts without --max_restarts, and a limit below it, are refused" {
  refused 2 '*--restart_limit is for restarts; add --max_restarts N;*' program --restart_limit 3 ./train.py
  refused 2 '*--restart_wait is for restarts; add --max_restarts N;*' program --restart_wait 3 ./train.py
  refused 2 '*--restart_limit 2 is for all restarts, so it cannot be less than --max_restarts 3;*' \
    program --max_restarts 3 --restart_limit 2 ./train.py
}

@test "somebody kills the process that looks: restarts count, and nothing waits" {
  trains 3 5 8
  behind bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 --max_restarts 1 ./train.py
  eventually pkill -KILL -P "$LAUNCHER" -f mindspore-launch-attempts
  ended 1 '*restart 1 of 1 in 1 s*no further step after 1 restart, the most that --max_restarts allows*'
}
