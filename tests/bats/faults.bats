#!/usr/bin/env bats
# Machines on which something is missing, full or forbidden.

# bats file_tags=thorough
load helper

setup() {
  setup_world
}

@test "no process can be started for a rank: it is said, the others end, exit 78" {
  local -r user=$((100000000 + $$)) # with no other processes; ulimit -u does not hold for root
  need_root "to become a user without other processes"
  python_of_all "$user"
  chmod a+rx "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" && chmod -R a+rwX .. "$STUB_OUT"
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait; 4: wait; 5: wait; 6: wait; 7: wait'
  # shellcheck disable=SC2016 # for the inner shell
  run --separate-stderr setpriv --reuid "$user" --clear-groups bash -c 'ulimit -u 15; exec bash "$@"' - \
    "$SCRIPTS/ascend8p.sh" --no_check --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf config.yaml
  [[ $status -eq 78 ]] || fail "exit $status: $stderr"
  [[ $stderr == *'ulimit -u'* && $stderr != *'cannot be read'* ]] || fail "$stderr"
  nobody_left
}

@test "the guardian can watch where no process can be started: the ranks, which start at the same time, may take the room" {
  local bus life said
  need_root "to become a user without other processes"
  mkfifo bus life
  exec {bus}<>bus {life}<>life
  # shellcheck disable=SC2016 # for the inner shell
  setpriv --reuid "$((200000000 + $$))" --clear-groups bash -c 'ulimit -u 1; exec bash "$@"' - \
    "$SCRIPTS/lib/guardian.sh" 10 "$bus" <life 2>said 3>&- &
  echo .stopping >&"$life"
  read -r -t 20 -u "$bus" said || fail "$(<said)"
  [[ $said == .wake ]]
  kill -KILL "$!"
}

@test "the plan's process is killed, for memory say: that is said, exit 78" {
  printf '#!/bin/sh\nkill -KILL $$\n' >killed
  chmod +x killed
  PYTHON=./killed run --separate-stderr launch ascend8p.sh config.yaml
  # some bashes say "Killed" before us
  [[ $status -eq 78 && $stderr == *"ascend8p.sh: the plan's process could not be started, or was ended (status 137): see ulimit -u, "* ]] || fail "$status: $stderr"
  [[ ! -e logs && -z "$(ls "$STUB_OUT")" ]]
}

@test "an exit code of 254 is the rank's own, and nothing to wonder about" {
  STUB_DO='0: wait; 1: exit 254' ends 254 '*rank 1 (device 1) exited with code 254*' launch ascend2p.sh config.yaml
  [[ $stderr != *'the launcher'* ]] || fail "$stderr"
}

@test "the launcher's shell fails inside: that is said, and the guardian is waited for" {
  # a guardian in small: sees the end of the lifeline, does its work, ends
  # shellcheck disable=SC2016 # for the inner shell
  run -78 --separate-stderr bash -c 'exec {life}<> <(:) {bus}<> <(:)
    (exec <"/dev/fd/$life" {life}>&- && read -r -t 20 || echo "$?" >ended) &
    exec bash "$1/lib/abandoned.sh" 1 ascend8p.sh "$!" "$life" "$bus"' - "$SCRIPTS"
  [[ $(<ended) -eq 1 ]]
  [[ $stderr == 'ascend8p.sh: the launcher has an internal error (status 1): please report it, '*'; stopping all that still runs' ]] || fail "$stderr"
  # before there are ranks and a guardian
  # shellcheck disable=SC2016 # for the inner shell
  run -78 --separate-stderr bash -c 'LAUNCH_SCRIPT=$1/run.sh && source "$1/lib/launch.sh" && trap '\''launch::_given_up "$?"'\'' EXIT && exit 254' ascend8p.sh "$SCRIPTS"
  [[ $stderr == 'ascend8p.sh: the launcher cannot start more processes (see ulimit -u, and the container'\''s limit of pids)' ]] || fail "$stderr"
}

@test "a launcher that can start no more processes does not wait for the one that it started last" {
  need_root "to become a user without other processes"
  # stderr is elsewhere, as with --console table
  # shellcheck disable=SC2016 # for the inner shell
  run -78 --separate-stderr timeout 60 setpriv --reuid "$((300000000 + $$))" --clear-groups bash -c '
    LAUNCH_SCRIPT=$1/run.sh && source "$1/lib/launch.sh" && trap '\''launch::_given_up "$?"'\'' EXIT
    exec {LIVE_STDERR}>&2 2>/dev/null
    sleep 300 &
    MEMBERS_MINDER[0]=$!
    ulimit -u 1
    : &' ascend8p.sh "$SCRIPTS"
  [[ $stderr == 'ascend8p.sh: the launcher cannot start more processes (see ulimit -u, and the container'\''s limit of pids)' ]] || fail "$stderr"
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
  launch_ranks '0: tick 30, exit 4; 1: wait' ascend2p.sh --hang_timeout 2 config.yaml
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
  [[ $stderr == *small*' cannot be written any more: No space left on device'* ]] || fail "$stderr"
  nobody_left
}
