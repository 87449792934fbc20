#!/usr/bin/env bats
# --import_once when the process that imports hangs, is signalled, or cannot fork; when folders, disks and processes run out.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
  cp "$FIXTURES/tells_itself.py" .
  printf 'import heavy\nprint("rank", flush=True)\n' >program.py
  CPU=(bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 --import_once=heavy)
}

teardown() {
  end_left_over
}

# waits [LINE]: the module heavy tells where it is, and waits there; LINE: what it does first
waits() {
  printf '%s\n' 'import os, threading' "${1-}" 'def load():' \
    '    with open(os.path.join(os.environ["STUB_OUT"], "at"), "w") as file: file.write(str(os.getpid()))' \
    '    threading.Event().wait()' 'load()' >heavy.py
}

# importing: the process that imports waits; its process id is in IMPORTER
importing() {
  IMPORTER=$(cat "$STUB_OUT/at" 2>/dev/null) && [[ -n $IMPORTER ]]
}

@test "an import that never returns: --hang_timeout names the module, and where it is, then and later" {
  waits
  local -r where="the job hung: the process that imports for all ranks was importing heavy, in wait (*threading.py:*), called from load (*heavy.py:5)"
  # shellcheck disable=SC2031 # of this test alone
  ends 124 "*launch.sh: $where; its stacks are in logs/launch-*/imports.stack"$'\n'* "${CPU[@]}" --hang_timeout 1 program.py
  [[ $stderr != *sitecustomize* && $stderr != *'no stack is known'* ]] || fail "$stderr"
  run "$PYTHON" "$PROJECT/tools/diagnose.py" logs/latest
  # shellcheck disable=SC2053 # a pattern is meant
  [[ $output == *$where* ]] || fail "$output"
  nobody_left
}

@test "an importing process that SIGSTOP holds is said to be so" {
  waits
  behind "${CPU[@]}" --hang_timeout 3 program.py
  eventually importing
  eventually stopped "$IMPORTER"
  ended 124 '*was importing heavy, stopped by SIGSTOP or a debugger, in *'
}

@test "a signal to the importing process ends the job, with the code of the signal" {
  local name status
  waits
  for name in QUIT:131 INT:130 TERM:143 HUP:129 ABRT:134; do
    rm -f "$STUB_OUT/at"
    behind "${CPU[@]}" program.py
    eventually importing
    kill -s "${name%:*}" "$IMPORTER"
    ended "${name#*:}" "*the process that imports for all ranks was ended by SIG${name%:*} *"
    [[ $stderr != *'imports for itself'* ]] || fail "$stderr"
  done
}

@test "a run's folder that is removed while the import lasts: it is said, and nothing is left" {
  printf '%s\n' 'import os, time' 'while os.path.isdir("logs/latest/"): time.sleep(0.02)' >heavy.py
  behind "${CPU[@]}" program.py
  eventually test -e logs/latest/rank_1.env
  rm -r logs/launch-*
  ended 78 '*the log folder /*/logs/launch-* is gone*'
  [[ $stderr != *Traceback* ]] || fail "$stderr"
}

# limited N RANKS: such a launch of a user who may have so many processes
limited() {
  local -r user=$((150000000 + $1 * 1000000 + $$)) # with no other processes; ulimit -u does not hold for root
  need_root "to become a user without other processes"
  python_of_all "$user"
  chmod a+rx "$BATS_RUN_TMPDIR" "$BATS_TEST_TMPDIR" && chmod -R a+rwX .. "$STUB_OUT"
  # shellcheck disable=SC2016 # for the inner shell
  run --separate-stderr setpriv --reuid "$user" --clear-groups bash -c 'ulimit -u "$1"; exec bash "${@:2}"' - "$1" \
    "$SCRIPTS/launch.sh" --device_target CPU -n "$2" --import_once=heavy program.py
}

@test "ranks that cannot be forked are named, as those that cannot be started, and the others end" {
  printf 'import os\n' >heavy.py
  printf 'import threading, heavy\nthreading.Event().wait()\n' >program.py
  limited 8 12
  was 78 '*rank * could not be started: there are too many processes*'
  [[ $stderr != *Traceback* && $stderr != *'the process that imports'* ]] || fail "$stderr"
  nobody_left
}
