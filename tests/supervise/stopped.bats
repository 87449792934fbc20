#!/usr/bin/env bats
# Somebody stops (SIGSTOP) a process of ours: the job ends when its ranks have ended, with their codes.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
}

# stop PID: stops it, and waits until it stands still
stop() {
  eventually stopped "$1"
}

# of_launcher NAME: the process beside the launcher of that name
of_launcher() {
  pgrep -P "$LAUNCHER" -f "mindspore-launch-$1"
}

# rank N: its process
rank() {
  recorded "rank_$1" 'r["pid"]'
}

@test "a rank, then --timeout: nothing waits in the kernel" {
  export STUB_DO='0: wait; 1: stop' # by itself: on a busy machine the limit may come before a test could stop it
  launch_behind ascend2p.sh --timeout 2 --grace 1 config.yaml
  ended 124 '*its --timeout*1     1       143 SIGTERM, stopped by us *'
  [[ $stderr != *kernel* ]] || fail "$stderr"
}

@test "the guardian" {
  launch_ranks '0: await go; 1: await go' ascend2p.sh config.yaml
  stop "$(of_launcher guardian)"
  touch "$STUB_OUT/rank_go.json"
  ended 0
}

@test "the launcher, while its ranks end" {
  launch_ranks '0: await go; 1: await go, exit 7' ascend2p.sh config.yaml
  stop "$LAUNCHER"
  touch "$STUB_OUT/rank_go.json"
  eventually gone "$(rank 0)"
  eventually gone "$(rank 1)"
  kill -CONT "$LAUNCHER"
  ended 7 '*rank 1 (device 1) exited with code 7*0     0       0  *'
}

@test "the guardian and a rank, then SIGKILL of the launcher: nobody is left" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --grace 1 config.yaml
  stop "$(rank 1)"
  dies_with_launcher stopped "$(of_launcher guardian)"
}

@test "everything beside the launcher, then SIGKILL of the launcher" {
  launch_ranks '0: wait; 1: print 1; 2: exit 3; 3: ignore TERM' ascend4p.sh --keep_going --grace 1 config.yaml
  eventually of_launcher report
  # shellcheck disable=SC2046 # a list of numbers
  kill -STOP $(of_launcher .) 2>/dev/null || true # one of them may just have ended
  eventually stands_still "$(of_launcher report)"
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

awake() {
  ! stands_still "$1"
}

@test "the console's reader: the job ends, and its last lines are on stdout" {
  launch_ranks '0: await go, print 3; 1: wait' ascend2p.sh config.yaml
  eventually of_launcher console
  stop "$(of_launcher console)"
  touch "$STUB_OUT/rank_go.json"
  eventually grep -q 'no end' logs/latest/rank_0.log
  end_by TERM 143
  grep -qx 'no end' "$BATS_TEST_TMPDIR/stdout"
}

@test "the process that explains a failure" {
  launch_ranks '0: exit 3; 1: wait' ascend2p.sh --keep_going config.yaml
  eventually of_launcher report
  stop "$(of_launcher report)"
  end_by TERM 3 '*rank_0.log has no Python exception*'
  [[ "$(launch_json 'r["outcome"]["exit"]')" = 3 ]]
}

@test "a rank that a debugger holds: that nobody knows its code is said, not that the kernel waits" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --grace 1 config.yaml
  local -r held=$(rank 1)
  # PTRACE_SEIZE; nobody gets the code before this process does
  env -u TEST_MARK python -c 'import ctypes, sys, time
print(ctypes.CDLL(None).ptrace(0x4206, int(sys.argv[1]), None, None), flush=True)
time.sleep(60)' "$held" >seized 3>&- &
  local -r debugger=$!
  eventually test -s seized
  if [[ "$(<seized)" != 0 ]]; then
    kill "$debugger"
    skip "ptrace is forbidden here"
  fi
  end_by TERM 143 "*rank 1 has ended, but its exit code is unknown: a debugger holds process $held*1     1       end not reported *"
  [[ $stderr != *kernel* ]] || fail "$stderr"
  [[ "$(launch_json 'r["outcome"]["members"]["1"]["status"]')" = 255 ]]
  kill "$debugger"
}

# ---- the same where an engine starts the ranks ---------------------------------------------------------------------------

# engine_job: two ranks of mpirun; rank 1 fails with 7 once rank_go.json is there. AGENT is its agent, MPIRUN mpirun.
engine_job() {
  need mpirun
  HCCN=()
  launch_ranks '0: wait; 1: await go, exit 7' run_mpirun.sh -n 2 --grace 1 config.yaml
  AGENT=$(above "$(rank 1)" 1)
  MPIRUN=$(above "$(rank 1)" 2)
  [[ "$(above "$MPIRUN" 1)" = "$LAUNCHER" ]]
}

# engine_goes_on: that job comes to its end
engine_goes_on() {
  touch "$STUB_OUT/rank_go.json"
  ended 7 '*rank 1 (device 1) exited with code 7*exit 7; *'
}

# watcher: the process that watches over AGENT
watcher() {
  pgrep -P "$AGENT" | grep -vx "$(rank 1)"
}

@test "mpirun: the watcher of an agent" {
  engine_job
  stop "$(watcher)"
  engine_goes_on
}

@test "mpirun: the agent of a rank is woken by its watcher" {
  engine_job
  stop "$AGENT"
  eventually awake "$AGENT"
  engine_goes_on
}

@test "mpirun: agent and watcher, then SIGKILL of the launcher" {
  engine_job
  local -r watcher=$(watcher)
  stop "$AGENT"
  stop "$watcher"
  dies_with_launcher one "$watcher"
}

@test "mpirun itself, then SIGTERM: it is killed after the grace time, and the agents end their ranks" {
  engine_job
  stop "$MPIRUN"
  end_by TERM 143
}

@test "mpirun itself, then SIGKILL of the launcher" {
  engine_job
  dies_with_launcher stopped "$MPIRUN"
}

# ---- in a session of its own, as ssh makes one: nobody else wakes what is stopped there ------------------------------------

# in_session SCRIPT ARGUMENT...: the launch
in_session() {
  need setsid
  stubbed ascend2p.sh --device_target CPU --grace 1 "${@:2}"
  STUBBED[1]=$1
  setsid "${STUBBED[@]}" >/dev/null 2>&1 3>&- &
  LAUNCHER=$!
}

@test "the process that explains a failure, in a session of its own, then SIGKILL of the launcher" {
  export STUB_DO='0: wait; 1: exit 3'
  in_session "$SCRIPTS/ascend2p.sh" --keep_going config.yaml
  eventually of_launcher report
  stop "$(of_launcher report)"
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

@test "a process that holds the guardian's pipe open, in a session of its own, then SIGKILL of the launcher" {
  mkdir project
  cp -a "$SCRIPTS" "$PROJECT/tools" project/ # with their times, by which Python knows that it has compiled them
  ln -s "$PROJECT"/{configs,hccl_tools,schemas} project/
  cat >>project/tools/features/first_failure.py <<'END'

    def opened(self) -> None:
        import os
        import signal

        if os.fork() == 0:
            with open(os.environ["STUB_OUT"] + "/holder", "w") as file:
                print(os.getpid(), file=file)
            os.kill(os.getpid(), signal.SIGSTOP)
            os._exit(0)
END
  export STUB_DO='0: wait; 1: wait'
  in_session project/scripts/ascend2p.sh config.yaml
  eventually [ -s "$STUB_OUT/holder" ]
  eventually recorded rank_1 'r["pid"]'
  local -r holder=$(<"$STUB_OUT/holder")
  eventually stands_still "$holder"
  kill -KILL "$LAUNCHER"
  eventually nobody_left
  eventually gone "$holder"
}
