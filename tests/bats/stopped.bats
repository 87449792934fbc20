#!/usr/bin/env bats
# Somebody stops (SIGSTOP) a process of ours: the job ends when its ranks have ended, with their codes.

# bats file_tags=thorough
load helper

setup() {
  setup_world
}

# stop PID: stops it, and waits until it stands still
stop() {
  eventually stopped "$1"
}

# stopped PID: each look stops it again, because our own programs wake what they find stopped, and may come before a look
stopped() {
  kill -STOP "$1" && stands_still "$1"
}

# of_launcher PATTERN: the child of the launcher whose command line fits
of_launcher() {
  pgrep -P "$LAUNCHER" -f "$1"
}

@test "the minder of a rank that fails: its code is the job's" {
  launch_ranks '0: wait; 1: await go, exit 7' ascend2p.sh config.yaml
  stop "$(above "$(recorded rank_1 'r["pid"]')" 1)"
  touch "$STUB_OUT/rank_go.json"
  ended 7 '*rank 1 (device 1) exited with code 7*exit 7; *'
}

@test "the minder of a rank, then --timeout: nothing waits in the kernel" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --timeout 2 --grace 1 config.yaml
  stop "$(above "$(recorded rank_1 'r["pid"]')" 1)"
  ended 124 '*its --timeout*1     1       143 SIGTERM, stopped by us *'
  [[ $stderr != *kernel* ]] || fail "$stderr"
}

@test "all minders at once, and the guardian" {
  launch_ranks '0: await go; 1: await go' ascend2p.sh config.yaml
  stop "$(above "$(recorded rank_0 'r["pid"]')" 1)"
  stop "$(above "$(recorded rank_1 'r["pid"]')" 1)"
  stop "$(of_launcher guardian.sh)"
  touch "$STUB_OUT/rank_go.json"
  ended 0
}

@test "a minder, then SIGKILL of the launcher: the guardian leaves neither the rank nor the minder" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --grace 1 config.yaml
  local -r minder=$(above "$(recorded rank_1 'r["pid"]')" 1)
  stop "$minder"
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

@test "the guardian, the console's reader and the process that writes the outcome, then SIGKILL of the launcher" {
  launch_ranks '0: wait; 1: print 1; 2: wait; 3: ignore TERM' ascend4p.sh --grace 1 config.yaml
  eventually of_launcher finish.py
  # shellcheck disable=SC2046 # a list of numbers
  kill -STOP $(pgrep -P "$LAUNCHER") 2>/dev/null || true # one of them may just have ended
  eventually stands_still "$(of_launcher finish.py)"
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

@test "the guardian, then the launcher's shell gives up: it is waited for, and works" {
  # shellcheck disable=SC2016 # for the inner shell
  ends 78 '*internal error*' bash -c 'exec {life}<> <(:) {bus}<> <(:)
    (exec <"/dev/fd/$life" {life}>&- && kill -STOP "$BASHPID" && read -r -t 20 || echo "$?" >ended) &
    exec bash "$1/lib/abandoned.sh" 1 ascend8p.sh "$!" "$life" "$bus"' - "$SCRIPTS"
  [[ $(<ended) -eq 1 ]]
}

awake() {
  ! stands_still "$1"
}

@test "the console's reader: the job ends, and its last lines are on stdout" {
  launch_ranks '0: await go, print 3; 1: wait' ascend2p.sh config.yaml
  local reader
  # the child that has the log open
  for reader in $(pgrep -P "$LAUNCHER"); do
    [[ -z "$(find "/proc/$reader/fd" -lname '*/rank_0.log')" ]] || break
  done
  stop "$reader"
  touch "$STUB_OUT/rank_go.json"
  eventually grep -q 'no end' logs/latest/rank_0.log
  end_by TERM 143
  grep -qx 'no end' "$BATS_TEST_TMPDIR/stdout"
}

@test "the process that writes the outcome" {
  launch_ranks '0: print 1; 1: wait' ascend2p.sh config.yaml
  eventually of_launcher finish.py
  stop "$(of_launcher finish.py)"
  end_by TERM 143
  [[ "$(launch_json 'r["outcome"]["exit"]')" = 143 ]]
}

@test "a minder that a debugger holds: that nobody knows the code is said, not that the kernel waits" {
  run -0 bash -uc '
    for part in log clock bus processes members carried stopping; do source "$1/lib/$part.sh"; done
    set -m
    sleep 60 &
    set +m
    group=$!
    members::add 3 log 999999999
    members::began 3 "$group"
    kill -KILL "$group"
    wait "$group"
    stopping::_give_up
    printf "%s, lost: %s\n" "${MEMBERS_STATUS[3]}" "${MEMBERS_LOST[3]}"' - "$SCRIPTS"
  [[ $output == *'rank 3 has ended, but its exit code is unknown: process 999999999, which waits for it, does not report it'*'255, lost: 1' ]] \
    || fail "$output"
}

# ---- the same where an engine starts the ranks ---------------------------------------------------------------------------

# engine_job SCRIPT...: two ranks of an engine; rank 1 fails with 7 once rank_go.json is there
engine_job() {
  HCCN=()
  launch_ranks '0: wait; 1: await go, exit 7' "$@" --grace 1 config.yaml
}

# engine_goes_on: that job comes to its end
engine_goes_on() {
  touch "$STUB_OUT/rank_go.json"
  ended 7 '*rank 1 (device 1) exited with code 7*exit 7; *'
}

@test "mpirun: the minder of a rank, and the watcher of its agent" {
  need mpirun
  engine_job run_mpirun.sh -n 2
  local child
  for child in $(pgrep -P "$(above "$(recorded rank_1 'r["pid"]')" 2)"); do
    stop "$child"
  done
  eventually awake "$child"
  engine_goes_on
}

@test "mpirun: the agent of a rank" {
  need mpirun
  engine_job run_mpirun.sh -n 2
  stop "$(above "$(recorded rank_1 'r["pid"]')" 2)"
  engine_goes_on
}

@test "mpirun: the relay, its minder and what waits for mpirun" {
  need mpirun
  engine_job run_mpirun.sh -n 2
  local -r runner=$(above "$(above "$(recorded rank_1 'r["pid"]')" 3)" 1)
  stop "$runner"
  stop "$(above "$runner" 1)"
  stop "$(above "$runner" 2)"
  engine_goes_on
}

@test "the process that writes the outcome, in a session of its own as ssh makes one, then SIGKILL of the launcher" {
  need setsid
  export STUB_DO='0: wait; 1: print 1'
  stubbed ascend2p.sh --device_target CPU --grace 1 config.yaml
  setsid "${STUBBED[@]}" >/dev/null 2>&1 3>&- &
  LAUNCHER=$!
  eventually of_launcher finish.py
  stop "$(of_launcher finish.py)"
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

@test "a process that holds the guardian's pipe open, in a session of its own, then SIGKILL of the launcher" {
  need setsid
  mkdir project
  cp -r "$SCRIPTS" project/
  ln -s "$PROJECT"/{configs,hccl_tools,schemas,tools} project/
  cat >>project/scripts/lib/outcome.sh <<'END'
outcome::begin() {
  (echo "$BASHPID" >"$STUB_OUT/holder" && kill -STOP "$BASHPID") &
}
END
  export STUB_DO='0: wait; 1: wait'
  stubbed ascend2p.sh --device_target CPU --grace 1 config.yaml
  STUBBED[1]=project/scripts/ascend2p.sh
  setsid "${STUBBED[@]}" >/dev/null 2>&1 3>&- &
  LAUNCHER=$!
  eventually [ -s "$STUB_OUT/holder" ]
  eventually recorded rank_1 'r["pid"]'
  local -r holder=$(<"$STUB_OUT/holder")
  eventually stands_still "$holder"
  kill -KILL "$LAUNCHER"
  eventually nobody_left
  eventually gone "$holder"
}
