#!/usr/bin/env bats
# Machines on which something is missing, full or forbidden.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
}

# with_processes N OPTION...: a job of 8 ranks that wait, of a user who may have so many processes
with_processes() {
  local -r user=$((100000000 + $1 * 10000000 + $$)) # with no other processes; ulimit -u does not hold for root
  need_root "to become a user without other processes"
  python_of_all "$user"
  chmod a+rx "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" && chmod -R a+rwX .. "$STUB_OUT"
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait; 4: wait; 5: wait; 6: wait; 7: wait'
  # shellcheck disable=SC2016 # for the inner shell
  run --separate-stderr setpriv --reuid "$user" --clear-groups bash -c 'ulimit -u "$1"; exec bash "${@:2}"' - "$1" \
    "$SCRIPTS/ascend8p.sh" --no_check --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf "${@:2}" config.yaml
}

@test "no process can be started for a rank: it is said, the others end, exit 78" {
  with_processes 8
  [[ $status -eq 78 ]] || fail "exit $status: $stderr"
  [[ $stderr == *'rank '*' could not be started: '*'ulimit -u'* && $stderr != *'cannot be read'* ]] || fail "$stderr"
  nobody_left
}

@test "no process can be started beside the launcher: the same" {
  with_processes 2
  [[ $status -eq 78 && -z "$(ls "$STUB_OUT")" ]] || fail "exit $status: $stderr"
  [[ $stderr == *"ascend8p.sh: the launcher cannot start more processes (see ulimit -u, and the container's limit of pids); stopping all that still runs" ]] \
    || fail "$stderr"
  nobody_left
}

@test "an exit code of 254 is the rank's own, and nothing to wonder about" {
  STUB_DO='0: wait; 1: exit 254' ends 254 '*rank 1 (device 1) exited with code 254*' launch ascend2p.sh config.yaml
  [[ $stderr != *'the launcher'* ]] || fail "$stderr"
}

# spoilt LINE PATTERN: a job of two ranks, of which rank 1 ignores SIGTERM, by a copy of the project in which the LINE of
# Python is run in the place of the supervisor's loop; the messages fit the PATTERN
spoilt() {
  mkdir project
  cp -r "$SCRIPTS" "$PROJECT/tools" project/
  ln -s "$PROJECT"/{configs,hccl_tools,schemas} project/
  printf '\n\ndef _spoilt(self):\n    %s\n\n\nSupervisor.run = _spoilt\n' "$1" >>project/tools/supervise/loop.py
  export STUB_DO='0: wait; 1: ignore TERM'
  ends 78 "*$2*" bash project/scripts/ascend2p.sh --device_target CPU --grace 1 --console none \
    --train_script "$FIXTURES/stub_trainer.py" "${HCCN[@]}" config.yaml
  nobody_left # when the command has ended, and not some time later
}

@test "the launcher fails inside: that is said, and the guardian is waited for" {
  # shellcheck disable=SC2016 # of Python
  spoilt 'import os, time; [time.sleep(0.02) for _ in iter(lambda: os.path.exists(os.environ["STUB_OUT"] + "/rank_1.json"), True)]; self.none' "Traceback *AttributeError: *
ascend2p.sh: the launcher has an internal error (AttributeError): please report it, *; stopping all that still runs"
}

@test "the same with a guardian that somebody has stopped" {
  spoilt 'import os, signal; os.kill(self.guardian.pid, signal.SIGSTOP); self.none' \
    'internal error (AttributeError): please report it, *; stopping all that still runs'
}

@test "the launcher can start no more processes while ranks run: they are stopped" {
  spoilt 'import errno; raise OSError(errno.EAGAIN, "no more")' \
    "ascend2p.sh: the launcher cannot start more processes (see ulimit -u, and the container's limit of pids); stopping all that still runs"
  [[ $stderr != *Traceback* ]] || fail "$stderr"
}

@test "a process next to the launcher that ends only a moment after it was killed is waited for" {
  mkdir project
  cp -r "$SCRIPTS" "$PROJECT/tools" project/
  ln -s "$PROJECT"/{configs,hccl_tools,schemas} project/
  sed -i 's/^            beside.kill()$/            beside.kill(signals.SIGSTOP); __import__("os").system(f"env -u TEST_MARK sh -c \x27sleep 1; : >killed; kill -9 {beside.pid}\x27 >\&- 2>\&- \&")/' \
    project/tools/features/restarts.py
  grep -q ': >killed; kill -9 {beside.pid}' project/tools/features/restarts.py
  ends 0 '*' bash project/scripts/ascend2p.sh --device_target CPU --max_restarts 1 --console none \
    --train_script "$FIXTURES/stub_trainer.py" "${HCCN[@]}" config.yaml
  [[ -e killed ]] || fail "the launcher has ended first"
  nobody_left
}

@test "SIGTERM in the moment when the guardian has started stops the job, and is no internal error" {
  mkdir project
  cp -r "$SCRIPTS" "$PROJECT/tools" project/
  ln -s "$PROJECT"/{configs,hccl_tools,schemas} project/
  sed -i 's/^    run.world.adopt(supervisor.guardian.pid)$/    os.kill(os.getpid(), 15)\n&/' project/tools/launch/life.py
  grep -q 'os.kill(os.getpid(), 15)' project/tools/launch/life.py
  ends 143 '*SIGTERM: stopping all ranks*' bash project/scripts/ascend2p.sh --device_target CPU \
    --train_script "$FIXTURES/stub_trainer.py" config.yaml
  nobody_left
}

@test "too few open files are refused with the command that helps" {
  refused 78 '*ulimit -n is 40, too few open files for MindSpore; type: ulimit -n *' \
    bash -c 'ulimit -Sn 40; exec bash "$@"' - "$SCRIPTS/ascend2p.sh" --device_target CPU \
    --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf config.yaml
}

@test "too few open files where stdout is closed: the same" {
  # shellcheck disable=SC2016 # for the inner shell
  refused 78 '*ulimit -n is 40, too few open files for MindSpore*' \
    bash -c 'ulimit -Sn 40; exec >&-; exec bash "$@"' - "$SCRIPTS/ascend2p.sh" --device_target CPU \
    --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf config.yaml
}

@test "too few open files, and no more allowed: who can allow them is said" {
  refused 78 '*ulimit -n is 40, too few open files for MindSpore, and more are not allowed: *limits.conf*' \
    bash -c 'ulimit -n 40; exec bash "$@"' - "$SCRIPTS/ascend2p.sh" --device_target CPU \
    "${HCCN[@]}" config.yaml
}

@test "TMPDIR is missing: nothing needs it" { TMPDIR=/none/such ends 0 '*' launch ascend2p.sh config.yaml; }

# only NAME...: a PATH with these programs and no others
only() {
  local name
  mkdir "$BATS_TEST_TMPDIR/only"
  for name; do
    ln -s "$(command -v "$name")" "$BATS_TEST_TMPDIR/only/"
  done
  printf '%s\n' "$BATS_TEST_TMPDIR/only"
}

@test "a PATH without setsid, flock, chrt, stat and ps: the launch and its end are as ever" {
  export STUB_DO='0: children; 1: await 0, exit 3'
  ends 3 '*' env PATH="$(only bash env grep mv rm mkdir readlink tail tr)" bash "$SCRIPTS/ascend2p.sh" \
    --device_target CPU --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf --grace 1 config.yaml
  [[ $stderr != *'command not found'* ]] || fail "$stderr"
  nobody_left
}

# A clock that was set back while the job ran: `date` and files' times jump, /proc/uptime does not.
@test "the logs are an hour in the future: no hang is seen where there is none, and one is where there is" {
  launch_ranks '0: tick 70, exit 4; 1: wait' ascend2p.sh --hang_timeout 5 config.yaml
  touch -d '+1 hour' logs/latest/rank_1.log
  ended 4
}

@test "/proc shows only one's own processes (hidepid): nothing is left all the same" {
  export STUB_DO='0: children; 1: await 0, exit 3'
  need_namespaces "to mount /proc anew" -m
  run --separate-stderr unshare -m bash -c 'mount -o remount,hidepid=2 /proc 2>/dev/null || exit 99; exec bash "$@"' - \
    "$SCRIPTS/ascend2p.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf --grace 1 config.yaml
  [[ $status -ne 99 ]] || skip "/proc cannot be mounted with hidepid here"
  [[ $status -eq 3 ]] || fail "exit $status: $stderr"
  nobody_left
}

@test "the disk with the logs is full: the end of the job says so" {
  export STUB_DO='0: fill, exit 3; 1: wait'
  need_namespaces "to have a small disk" -m
  mkdir small
  # shellcheck disable=SC2016 # for the inner shell
  run --separate-stderr unshare -m bash -c 'mount -t tmpfs -o size=256k none small || exit 99; exec bash "$@"' - \
    "$SCRIPTS/ascend2p.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf \
    --log_dir small --grace 1 config.yaml
  [[ $status -ne 99 ]] || skip "no tmpfs can be mounted here"
  [[ $status -ne 0 ]] || fail "$stderr"
  [[ $stderr == *small*' can no longer be written: No space left on device'* ]] || fail "$stderr"
  nobody_left
}

# bats test_tags=thorough
@test "the project and its Python are removed while the job runs: its end and its exit code are the same" {
  mkdir -p gone
  cp -r "$PROJECT"/{scripts,tools,hccl_tools,schemas,configs} gone
  SCRIPTS=$PWD/gone/scripts
  export STUB_DO='0: wait; 1: await go, exit 5'
  launch_behind ascend2p.sh --grace 1 config.yaml
  eventually ranks_up 0 1
  eventually [ -e "$STUB_OUT/scheduler.json" ] # it has imported all that it needs
  eventually rm -rf gone                       # a process may write bytecode into it meanwhile
  touch "$STUB_OUT/rank_go.json"
  ended 5 '*rank 1 (device 1) exited with code 5 *1     1       5, failed first *this run cannot be explained: *exit 5; logs and launch.json are in *'
  [[ "$(launch_json 'r["outcome"]["first_failure"]')" = 1 ]]
}
