#!/usr/bin/env bats
# Somebody removes, moves or replaces the files of a run while it runs, or the disk is full: the exit code is the job's,
# and the messages say what is missing.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
}

# failing: a job whose rank 0 fails with 4 once the file rank_go.json is there
failing() {
  launch_ranks '0: print 3, await go, exit 4; 1: wait' ascend2p.sh config.yaml
  eventually grep -q 'no end' logs/latest/rank_0.log
}

# goes_on: the job of `failing` comes to its end: its code, its report, and no line that is not true any more
goes_on() {
  touch "$STUB_OUT/rank_go.json"
  ended 4 "*rank 0 (device 0) exited with code 4*0     0       4, failed first *exit 4$1"
  [[ $stderr != *'internal error'* && $stderr != *Traceback* ]] || fail "$stderr"
}

@test "the folder of all logs is removed" {
  failing
  rm -r logs
  goes_on ''
  [[ $stderr == *"the log folder $PWD/logs/"*' is gone, with the logs'* ]] || fail "$stderr"
  [[ $stderr != *'launch.json'* ]] || fail "$stderr"
}

@test "the folder of the run is moved away, and a file takes its place" {
  failing
  local -r run=$(readlink -f logs/latest)
  mv "$run" elsewhere
  touch "$run"
  goes_on ''
  [[ $stderr == *"the log folder $run is gone, with the logs"* ]] || fail "$stderr"
  [[ "$(tail -n 1 elsewhere/rank_0.log)" == *'rank 0 gives up' ]]
}

@test "the current folder is removed, and the logs are elsewhere" {
  mkdir job
  mv config.yaml hccn.conf job
  pushd job
  launch_ranks '0: print 3, await go, exit 4; 1: wait' ascend2p.sh --log_dir ../logs config.yaml
  rm -r "$PWD"
  popd
  goes_on '; logs and launch.json are in *'
  [[ $stderr == *'its log '*'/rank_0.log has no Python exception'* ]] || fail "$stderr"
  [[ "$(launch_json 'r["outcome"]["exit"], "diagnosis" in r["outcome"]')" = '(4, True)' ]]
}

# record_is WHAT: launch.json is WHAT, and the job ends in order
record_is() {
  goes_on '; logs*'
  [[ $stderr == *"the outcome is not saved: $PWD/logs/"*"/launch.json: $1"* ]] || fail "$stderr"
  [[ $stderr == *'rank_0.log has no Python exception'*'it ends: no endrank 0 gives up'* ]] || fail "$stderr"
  [[ -z "$(find logs/ -name '*.part')" ]]
}

@test "launch.json is removed: that is said, and the failure is explained all the same" {
  failing
  rm logs/latest/launch.json
  record_is 'no such file'
  [[ $stderr == *'; logs are in logs/'* && ! -e logs/latest/launch.json ]] || fail "$stderr"
}

@test "launch.json is torn, as an editor or a full disk leaves it" {
  failing
  printf '{"script": ' >logs/latest/launch.json
  record_is 'is not JSON: '
}

@test "launch.json is a folder" {
  failing
  rm logs/latest/launch.json && mkdir logs/latest/launch.json
  record_is 'cannot be read: it is not a regular file'
}

@test "the same under mpirun, whose own lines go to a log there, too" {
  need mpirun
  HCCN=()
  launch_ranks '0: print 3, await go, exit 4; 1: wait' run_mpirun.sh -n 2 config.yaml
  rm -r logs
  goes_on ''
  [[ $stderr == *' is gone, with the logs'* ]] || fail "$stderr"
}

# ---- logs that nobody sees ---------------------------------------------------------------------------------------------

# healthy WHAT COMMAND...: after the COMMAND no hang is seen in the logs of a job that works, and WHAT is said once
healthy() {
  launch_ranks '0: tick 100, exit 4; 1: wait' ascend2p.sh --hang_timeout 5 config.yaml
  eventually grep -q 'tick 20' logs/latest/rank_0.log # the launcher has looked at the logs, which it does every second
  "${@:2}"
  ended 4
  [[ $stderr == *"$1; so --hang_timeout cannot tell whether the ranks work, and does not end the job"*'failed first'* ]] || fail "$stderr"
  [[ $stderr != *'--hang_timeout cannot'*'--hang_timeout cannot'* ]] || fail "$stderr"
}

@test "--hang_timeout: logs that are gone say nothing about a hang" {
  healthy ' is gone, with the logs: it was removed, moved or replaced while the job ran' rm -r logs
}

rotate() {
  local rank
  for rank in 0 1; do
    mv "logs/latest/rank_$rank.log" "logs/latest/rank_$rank.log.1"
    : >"logs/latest/rank_$rank.log"
  done
}

@test "--hang_timeout: the ranks go on writing to logs that logrotate has moved" {
  healthy 'logs of ranks were removed, moved or replaced' rotate
}

@test "--hang_timeout needs no program: a hang is seen where there is no stat" {
  STUB_DO='0: wait' ends 124 '*no rank has written to its log for 1 s*' \
    env PATH="$(without stat)" bash "$SCRIPTS/ascend2p.sh" --device_target CPU --hang_timeout 1 --grace 1 \
    --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf config.yaml
}

# ---- restarts ------------------------------------------------------------------------------------------------------------

# killed_once COMMAND...: after the COMMAND in the run's folder, rank 1 of the first attempt is killed
killed_once() {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --max_restarts 1 config.yaml
  (cd "$(readlink -f logs/latest)" && "$@")
  kill -KILL "$(recorded rank_1 'r["pid"]')"
}

@test "a restart whose log folder cannot be made: the code is the rank's, with the whole report" {
  killed_once touch restart_1
  ended 137 "*no restart 1: the folder $PWD/logs/*/restart_1 for its logs cannot be made: *"
  [[ $stderr == *$'\n1     1       137 SIGKILL, failed first '*'exit 137; logs and launch.json are in '* ]] || fail "$stderr"
  [[ $stderr != *'restart 1 of 1'* ]] || fail "$stderr"
  [[ "$(launch_json 'r["outcome"]["exit"], "attempts" in r["outcome"]')" = '(137, False)' ]]
}

@test "a rank whose rank_N.env cannot be written: it runs, with a note in its log" {
  killed_once mkdir -p restart_1/rank_0.env
  eventually grep -qs '^note: .*/restart_1/rank_0.env cannot be written' logs/latest/restart_1/rank_0.log
  end_by TERM 143
}

@test "a rank whose log cannot be opened is refused: 78, and the reason" {
  killed_once mkdir -p restart_1/rank_0.log
  ended 78 '*rank 0 (device 0) exited with code 78*rank 0 (device 0) failed first: exit status 78; its log */restart_1/rank_0.log cannot be read: *'
}

# ---- the disk ------------------------------------------------------------------------------------------------------------

# on_a_disk OPTIONS COMMAND: a failing job whose logs are on a small disk of its own, where COMMAND runs meanwhile
on_a_disk() {
  need_namespaces "to have a small disk" -m
  mkdir small
  export STUB_DO='0: await go, kill SEGV; 1: wait'
  # shellcheck disable=SC2016 # for the inner shell
  run --separate-stderr unshare -m bash -c '
    mount -t tmpfs -o "size=256k,nr_inodes=$1" none small || exit 99
    command=$2
    shift 2
    bash "$@" &
    until [[ -e $STUB_OUT/rank_0.json && -e $STUB_OUT/rank_1.json ]]; do sleep 0.05; done
    (cd "$(readlink -f small/latest)" && eval "$command")
    touch "$STUB_OUT/rank_go.json"
    wait "$!"
    code=$?
    find small/ -name "*.part" -printf "left: %f, %s bytes\n" >&2
    python -c "import json; json.load(open(\"small/latest/launch.json\"))" || code=98
    exit "$code"' - "$1" "$2" "$SCRIPTS/ascend2p.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" \
    --hccn_conf hccn.conf --log_dir small --grace 1 config.yaml
  [[ $status -ne 99 ]] || skip "no tmpfs can be mounted here"
  was 139 '*0     0       139 SIGSEGV, failed first *exit 139; logs and launch.json are in small/*'
  [[ $stderr != *'left: '* ]] || fail "$stderr"
  nobody_left
}

@test "a full disk: the exit code is the rank's, and no part of launch.json stays" {
  on_a_disk 0 'head -c 1M /dev/zero >filler || :'
  [[ $stderr == *'can no longer be written: No space left on device'* ]] || fail "$stderr"
  [[ $stderr == *'the outcome is not saved: '*'/launch.json: cannot be written: No space left on device'* ]] || fail "$stderr"
}

@test "a disk without inodes" {
  on_a_disk 40 'while : >"file_$((n += 1))"; do :; done 2>/dev/null'
  [[ $stderr == *'the outcome is not saved: '*'/launch.json: cannot be written: No space left on device'* ]] || fail "$stderr"
}

@test "a disk that has become read-only" {
  on_a_disk 0 'mount --bind "$OLDPWD/small" "$OLDPWD/small" && mount -o remount,bind,ro "$OLDPWD/small"'
  [[ $stderr == *'can no longer be written: Read-only file system'* ]] || fail "$stderr"
}
