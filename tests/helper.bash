# shellcheck shell=bash
# Shared by all bats files: an isolated world for each test, and functions that inspect what a launch did.

bats_require_minimum_version 1.5.0

PROJECT=$(cd "$BATS_TEST_DIRNAME/../.." && pwd -P)
SCRIPTS=$PROJECT/scripts
FIXTURES=$PROJECT/tests/fixtures

# The tests compare English messages, whatever the locale of the person who runs them.
unset LAUNCH_LANG LANGUAGE MSLAUNCH_OPTIONS
[[ ${LC_ALL:-${LC_MESSAGES:-${LANG-}}} != zh* ]] || export LC_ALL=C.UTF-8

# Prepares a test that trains with the real MindSpore.
setup_training() {
  cd "$BATS_TEST_TMPDIR" || return
  unset RANK_TABLE_FILE DATA_PATH
  PYTHON=$(command -v python)
  TEST_MARK=$BATS_TEST_TMPDIR
  export PYTHON TEST_MARK
}

# Prepares a separate folder with blanks, quotes and Chinese in its name, and a config.  Unsets variables that the person
# who runs the tests may have set.
setup_world() {
  set +T # as in `eventually`
  make_world
  set -T
}

make_world() {
  local name
  for name in RANK_ID RANK_SIZE DEVICE_ID DEVICE_NUM RANK_TABLE_FILE MS_WORKER_NUM MS_SCHED_HOST MS_SCHED_PORT \
    MS_ROLE MS_NODE_ID LOG_DIR RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT SERVER_ID OMP_NUM_THREADS GLOG_v ASCEND_RT_VISIBLE_DEVICES ASCEND_VISIBLE_DEVICES NPU_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES ASCEND_PROCESS_LOG_PATH NO_COLOR POSIXLY_CORRECT \
    PYTHONFAULTHANDLER PYTHONUNBUFFERED RESUME; do
    unset "$name"
  done
  PYTHON=$(command -v python)
  WORLD="$BATS_TEST_TMPDIR/a 'world' 世界"
  STUB_OUT=$BATS_TEST_TMPDIR/out
  TEST_MARK=$BATS_TEST_TMPDIR
  PYTHONPATH=$FIXTURES/stub_mindspore
  LAUNCH_LOCKS=$BATS_TEST_TMPDIR/locks # tests do not wait for one another's simulated devices
  export PYTHON STUB_OUT TEST_MARK PYTHONPATH LAUNCH_LOCKS
  # The files of a killed mpirun disappear with the test. In /tmp an mpirun 5 with the same process id would fail on them.
  export OMPI_MCA_orte_tmpdir_base=$BATS_TEST_TMPDIR PRTE_MCA_prte_tmpdir_base=$BATS_TEST_TMPDIR
  HCCN=(--hccn_conf hccn.conf) # scripts without rank tables have no such option; their tests empty it
  mkdir -p "$WORLD" "$STUB_OUT"
  cd "$WORLD" || return 1
  printf 'system:\n  distribute: True\n' >config.yaml
  for name in 0 1 2 3 4 5 6 7; do
    printf 'address_%s=10.1.1.1%s\n' "$name" "$name"
  done >hccn.conf
}

# launch SCRIPT ARGUMENT...: runs the script with the stub trainer, on CPU, without a check for NPUs.
launch() {
  stubbed "$1" --device_target CPU "${@:2}"
  "${STUBBED[@]}"
}

# server_table SERVER...: writes hccl.json with two devices on each server, in that order.  Each run of the tests has a
# different table, because the scheduler's port follows from it.
server_table() {
  python - "$@" >hccl.json <<'PY'
import json, random, sys
servers = [
    {"server_id": name, "device": [
        {"device_id": str(d), "device_ip": f"10.78.{n}.{d + 1}", "rank_id": str(2 * n + d)} for d in range(2)]}
    for n, name in enumerate(sys.argv[1:])
]
table = {"version": "1.0", "server_count": str(len(servers)), "server_list": servers, "status": "completed"}
print(json.dumps(table) + "".join(random.choices(" \n", k=32)))
PY
}

# launch_npu SCRIPT ARGUMENT...: the same for NPUs, without a check for them.
launch_npu() {
  stubbed "$1" --no_check "${@:2}"
  "${STUBBED[@]}"
}

# stubbed SCRIPT ARGUMENT...: sets STUBBED to the command that starts the script with the stub trainer.
stubbed() {
  STUBBED=(bash "$SCRIPTS/$1" --train_script "$FIXTURES/stub_trainer.py" "${HCCN[@]}" "${@:2}")
}

# launch_behind SCRIPT ARGUMENT...: launches in the background; LAUNCHER is its process id. As in an interactive shell,
# the job has its own process group, and does not ignore INT and QUIT.
launch_behind() {
  stubbed "$1" --device_target CPU "${@:2}"
  behind "${STUBBED[@]}"
}

# behind COMMAND...: runs the command in the background, in the same way.
behind() {
  : >"$BATS_TEST_TMPDIR/stdout" # at once: a test must not read the output of an earlier launch
  : >"$BATS_TEST_TMPDIR/stderr"
  set -m
  "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- &
  LAUNCHER=$!
  set +m
}

# launch_ranks WHAT SCRIPT ARGUMENT...: launches in the background ranks that do WHAT (STUB_DO); waits until all run.
launch_ranks() {
  export STUB_DO=$1
  local -r others=${STUB_DO//[^;]/}
  launch_behind "${@:2}"
  # shellcheck disable=SC2046 # a list of numbers
  eventually ranks_up $(seq 0 ${#others})
}

# ended [STATUS [PATTERN]]: waits for LAUNCHER's end; sets `status` and `stderr` to its exit status and messages.  With a
# STATUS: checks the status and the messages, and that nothing still runs.
ended() {
  eventually gone "$LAUNCHER"
  status=0
  wait "$LAUNCHER" || status=$?
  stderr=$(<"$BATS_TEST_TMPDIR/stderr")
  if [[ $# -gt 0 ]]; then
    was "$1" "${2-*}" || return
    nobody_left || fail "still running: $(left_over)"
  fi
}

# end_by SIGNAL [STATUS [PATTERN]]: sends LAUNCHER the signal, and waits for its end.
end_by() {
  kill -s "$1" "$LAUNCHER"
  ended "${@:2}"
}

# was STATUS PATTERN: checks the status and the messages of the last command.  It returns explicitly where it fails: bash
# does not end a function that is called before && or ||.
was() {
  [[ $status -eq $1 ]] || fail "exit $status, not $1: $stderr" "${output-}" || return
  # shellcheck disable=SC2053 # this is a pattern
  [[ $stderr == $2 ]] || fail "the messages are: $stderr"
}

# ends STATUS PATTERN COMMAND...: runs the command, and checks its status and messages; `output` has its output.
ends() {
  run --separate-stderr "${@:3}"
  was "$1" "$2"
}

gone() {
  local line
  ! kill -0 "$1" 2>/dev/null || { { read -r line <"/proc/$1/stat"; } 2>/dev/null && [[ ${line##*) } == Z* ]]; }
}

# stat_of PID: the fields after its name in /proc/PID/stat: state, parent and more.  Starts no program, for fast polling.
stat_of() {
  local line
  { read -r line <"/proc/$1/stat"; } 2>/dev/null && printf '%s\n' "${line##*) }"
}

# need PROGRAM...: skips the test if one of them is not on PATH. The end of `make test` prints how to get it.
need() {
  local program
  for program; do
    command -v "$program" >/dev/null || skip "needs $program"
  done
}

# need_root [WHY]: skips the test unless it runs as root.
need_root() {
  ((EUID == 0)) || skip "needs root${1:+: $1}"
}

# need_namespaces WHY FLAG...: skips the test if such namespaces (flags of unshare) cannot be made.
need_namespaces() {
  need unshare
  unshare "${@:2}" true 2>/dev/null && return
  need_root "$1"
  skip "needs namespaces: $1"
}

# stands_still PID: whether the process is stopped.
stands_still() {
  [[ $(stat_of "$1") == T* ]]
}

# stopped PID: stops the process, and checks that it is stopped.  Call it repeatedly: our own programs wake stopped
# processes, and may do so before the check.
stopped() {
  kill -STOP "$1" && stands_still "$1"
}

# above PID N: prints its Nth ancestor.
above() {
  local pid=$1 i
  for ((i = 0; i < $2; i++)); do
    pid=$(stat_of "$pid" | cut -d ' ' -f 2)
  done
  printf '%s\n' "$pid"
}

# pipes PID: prints its open pipes, sorted
pipes() {
  find "/proc/$1/fd" -lname 'pipe:*' -printf '%l\n' | sort -u
}

# shares_no_pipe PID: checks that this process has no pipe open that belongs to another helper process of the launcher
shares_no_pipe() {
  local other
  [[ -z $(find "/proc/$1/fd" -lname "$LAUNCH_LOCKS/*") ]] || fail "it holds the lock of the devices: $(ls -l "/proc/$1/fd")"
  for other in $(pgrep -P "$LAUNCHER" -f mindspore-launch-); do
    [[ $other != "$1" ]] || continue
    run comm -23 <(comm -12 <(pipes "$1") <(pipes "$other")) <(pipes $$)
    [[ -z $output ]] || fail "$(ls -l "/proc/$1/fd" "/proc/$other/fd")"
  done
}

# A test that fails halfway must not leave its launch behind.
teardown() {
  end_left_over
}

# end_left_over: ends the processes of this test, repeatedly: a shell among them may start another one meanwhile.
end_left_over() {
  local file i
  for ((i = 0; i < 100; i++)); do
    [[ -n $(left_over) ]] || return 0
    left_over | while IFS= read -r file; do
      kill -KILL "$(cut -d/ -f3 <<<"$file")" 2>/dev/null || true
    done
  done
}

# refused STATUS PATTERN [COMMAND...]: checks that the command, or the last `run`, ended with this status and one
# matching line on stderr, and did nothing.
refused() {
  [[ $# -eq 2 ]] || run --separate-stderr "${@:3}"
  was "$1" "$2" || return
  [[ "${#stderr_lines[@]}" -eq 1 ]] || fail "not one line: $stderr"
  [[ -z "$output" ]] || fail "stdout is not empty: $output"
  did_nothing
}

LATER=() # three entries for each: status, pattern, command

# refused_later STATUS PATTERN COMMAND...: leaves the checks of `refused` for this command to `all_refused`. The script
# runs now, up to the start of Python.
refused_later() {
  local LAUNCH_NOTED
  printf -v LAUNCH_NOTED '%s/later/%04d.launch' "$BATS_TEST_TMPDIR" "${#LATER[@]}"
  export LAUNCH_NOTED
  if ((${#LATER[@]} == 0)); then
    mkdir "$BATS_TEST_TMPDIR/later"
    # shellcheck disable=SC2016 # for the inner shell
    printf '%s\n' '#!/bin/sh' '{ printf "%s\0" "$#" "$@" "$PWD"; exec env -u LAUNCH_NOTED -0; } >"$LAUNCH_NOTED"' >"$BATS_TEST_TMPDIR/later/python"
    chmod +x "$BATS_TEST_TMPDIR/later/python"
  fi
  PYTHON=$BATS_TEST_TMPDIR/later/python "${@:3}" || fail "$* ($?)" || return
  LATER+=("$1" "$2" "${*:3}")
}

# all_refused: checks that the launches from refused_later end as given, with one line on stderr, and do nothing. One
# Python plans them all: see fixtures/in_turn.py.
all_refused() {
  local -i at=0
  while IFS= read -r -d '' status && IFS= read -r -d '' output && IFS= read -r -d '' stderr; do
    stderr=${stderr%$'\n'}
    was "${LATER[at]}" "${LATER[at+1]}" || fail "${LATER[at+2]}" || return
    [[ $stderr != *$'\n'* ]] || fail "not one line: $stderr" || return
    [[ -z $output ]] || fail "stdout is not empty: $output" || return
    at+=3
  done < <("$PYTHON" -E -s "$FIXTURES/in_turn.py" "$BATS_TEST_TMPDIR"/later/*.launch)
  ((at > 0 && at == ${#LATER[@]})) || fail "no answer to ${LATER[*]:at:3}" || return
  rm -r "$BATS_TEST_TMPDIR/later"
  LATER=()
  did_nothing
}

# did_nothing: checks that launches have neither written files nor started ranks
did_nothing() {
  [[ ! -e logs ]] || fail "logs was made" || return
  [[ ! -L train.log && ! -e train.log ]] || fail "train.log was made" || return
  [[ -z "$(ls "$STUB_OUT")" ]] || fail "ranks were started: $(ls "$STUB_OUT")"
}

fail() {
  printf '%s\n' "$@" >&2
  return 1
}

# eventually COMMAND...: polls until the command succeeds, for at most 180 s, which is enough on a busy machine.
eventually() {
  set +T # the functions are not traced: what bats does before each command takes longer than most commands
  poll "$@" || { set -T && return 1; }
  set -T
}

# poll COMMAND...: the polling of `eventually`. It slows down with time: the other tests need the processor.
poll() {
  local -r end=$((SECONDS + 180)) pipe=$BATS_RUN_TMPDIR/nobody_writes
  local -i pause=20 # milliseconds
  local nap
  until "$@"; do
    ((SECONDS < end)) || fail "never came true: $*" || return 1
    printf -v nap '0.%03d' "$pause"
    [[ -p $pipe ]] || mkfifo "$pipe" || :
    read -rt "$nap" <>"$pipe" || (($? > 128)) || sleep "$nap" # bash itself waits, without a process for it
    pause=$((pause < 100 ? pause + pause / 4 : 100))
  done
}

# dies_with_launcher HOW PID: checks that PID and everything else end after SIGKILL of the launcher.  HOW: `one`, only
# the launcher is killed; `group`, its process group; `stopped`, the launcher, while PID is stopped
dies_with_launcher() {
  [[ $1 != stopped ]] || eventually stopped "$2"
  if [[ $1 == group ]]; then
    kill -KILL -- "-$LAUNCHER"
  else
    kill -KILL "$LAUNCHER"
  fi
  eventually gone "$2"
  eventually nobody_left
}

# ranks_up N...: whether these ranks run.
ranks_up() {
  local rank
  for rank; do
    [[ -e "$STUB_OUT/rank_$rank.json" ]] || return 1
  done
}

# Prints the processes of the test that still run; a zombie's environment is empty.
left_over() {
  grep -lszxF -- "TEST_MARK=$BATS_TEST_TMPDIR" /proc/[0-9]*/environ
}

nobody_left() {
  local environ
  local -r found=$(left_over)
  [[ -z $found ]] || fail "left over:" "$(
    for environ in $found; do
      tr '\0' ' ' <"${environ%/*}/cmdline"
      grep -E '^(Name|State|PPid)' "${environ%/*}/status"
    done 2>&1
  )"
}

# recorded NAME EXPRESSION: prints a part of the record of a rank or the scheduler; the record is `r` in Python.
recorded() {
  python -S -E -c 'import json, sys; r = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$STUB_OUT/$1.json" "$2"
}

# contract NAME: prints the variables that the launch gave it, sorted, one per line, with RUN for the run's path.
contract() {
  python - "$STUB_OUT/$1.json" "$(readlink -f logs/latest)" <<'PY'
import json, os, sys

record = json.load(open(sys.argv[1]))
env = record.get("env", record)
for name in sorted(env):
    if os.environ.get(name) != env[name] and name not in ("SHLVL", "_", "OLDPWD", "LAUNCH_JOB"):
        print(f"{name}={env[name]}".replace(sys.argv[2], "RUN"))
PY
}

# engine_contract RANK: checks the last rank of an engine's local job: its environment, its log and its line in the
# report. Another rank has printed 3 lines.
engine_contract() {
  local -r rank=$1 ranks=$(($1 + 1))
  local found
  found=$(contract "rank_$rank")
  diff <(grep -E '^(RANK|DEVICE|MS_|LO|WORLD|MASTER|SERVER)' <<<"$found" | grep -v -e PORT -e TIMEOUT) <(printf '%s\n' \
    "DEVICE_ID=$rank" "DEVICE_NUM=$ranks" "LOCAL_RANK=$rank" "LOCAL_WORLD_SIZE=$ranks" LOG_DIR=RUN MASTER_ADDR=127.0.0.1 \
    "MS_NODE_ID=$rank" MS_RETRY_INTERVAL_{LOWER,UPPER}=1 MS_ROLE=MS_WORKER MS_SCHED_HOST=127.0.0.1 "MS_WORKER_NUM=$ranks" \
    "RANK=$rank" "RANK_ID=$rank" "RANK_SIZE=$ranks" SERVER_ID=0 "WORLD_SIZE=$ranks") || fail "$found"
  [[ "$(sed -n 's/^MASTER_PORT=//p' <<<"$found")" = "$(sed -n 's/^MS_SCHED_PORT=//p' <<<"$found")" ]] || fail "$found"
  [[ $found != *LAUNCH_T* ]] || fail "$found"
  [[ "$(tail -n 1 logs/latest/rank_1.log)" = 'no end' ]]
  [[ $stderr == *$'\n'"$rank     $rank       0 "*"rank_$rank.log"* ]] || fail "$stderr"
  nobody_left
}

# places VARIABLE...: prints their values in every rank, one line per rank, in the order of the ranks.
places() {
  python - "$STUB_OUT" "$@" <<'PY'
import json, pathlib, sys

records = sorted(pathlib.Path(sys.argv[1]).glob("rank_*.json"), key=lambda path: int(path.stem[5:]))
for path in records:
    env = json.loads(path.read_text())["env"]
    print(*(env.get(name, "-") for name in sys.argv[2:]))
PY
}

# launch_json EXPRESSION: prints a part of the latest launch.json; the document is `r` in Python.
launch_json() {
  python -S -E -c 'import json, sys; r = json.load(open("logs/latest/launch.json")); print(eval(sys.argv[1]))' "$1"
}

# launch_json_fits: checks the latest launch.json against its schema.  Only if our quick check fails, jsonschema finds the
# reasons: its import takes as long as a launch.
launch_json_fits() {
  python -I - "$PROJECT" logs/latest/launch.json <<'PY'
import json, sys

sys.path.insert(0, sys.argv[1])
from hccl_tools.check import schema_check

with open(sys.argv[2]) as file:
    sys.exit("\n".join(map(str, schema_check.problems_by_name(json.load(file), "launch"))) or 0)
PY
}

# has_mindspore: whether the real MindSpore is installed, not its stub.
has_mindspore() {
  env -u PYTHONPATH python -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("mindspore") is None)'
}

need_mindspore() {
  unset PYTHONPATH
  has_mindspore || skip 'needs MindSpore'
}

# import_once: from now on the ranks of this test are forks of one process, as for people who set this variable. Most
# real trainings use it if the launcher starts the ranks itself. Tests of engines and imports do not.
import_once() {
  export MSLAUNCH_OPTIONS=--import_once
}

# train_for_real: requires MindSpore, for ranks that are other people's programs: see fixtures/ends_at_once.
train_for_real() {
  need_mindspore
  export PYTHONPATH=$FIXTURES/ends_at_once
}

# digits_in FOLDER: provides the demo's digits there; `make data` may have made them already.
digits_in() {
  if [[ -d $PROJECT/data/digits ]]; then
    ln -s "$PROJECT/data/digits" "$1"
  else
    python "$PROJECT/tools/prepare_digits.py" "$1"
  fi
}

# trained_alike FILE FILE: checks in the logs of two ranks that they have trained and have the same weights.
trained_alike() {
  local accuracy
  accuracy=$(grep '^accuracy on held-out data' "$1") || fail "$(<"$1")"
  [[ "$(grep '^accuracy on held-out data' "$2")" = "$accuracy" ]] || fail "$accuracy" "$(<"$2")"
}

# fitted_alike RANKS FILE...: checks in the logs of fixtures/one_weight.py that so many ranks trained one model together.
fitted_alike() {
  local log
  for log in "${@:2}"; do
    grep -Eqx "the weight of $1 ranks is ([0-9.]+), the best is \1" "$log" || fail "$log" "$(<"$log")"
  done
}

# python_of_all USER: sets PYTHON to a Python with PyYAML that this user can run
python_of_all() {
  local site
  site=$("$PYTHON" -c 'import os, yaml; print(os.path.dirname(os.path.dirname(yaml.__file__)))')
  PYTHONPATH+=:$site
  for PYTHON in "$PYTHON" /usr/bin/python3; do
    # shellcheck disable=SC2016 # for the inner shell
    ! setpriv --reuid "$1" --clear-groups bash -c '"$1" -c "import yaml"' - "$PYTHON" 2>/dev/null || return 0
  done
  skip "another user cannot run $PYTHON with PyYAML"
}

# without NAME: prints a PATH with all programs of this one except NAME
without() {
  local -r path=$BATS_TEST_TMPDIR/path
  mkdir "$path"
  # One `ln` links them all: there are thousands. It keeps the first of each name, as PATH does, and rejects the others.
  # shellcheck disable=SC2086 # the folders of PATH, one by one
  (IFS=: && find $PATH -maxdepth 1 -perm /111 ! -type d ! -name "$1" -print0) | xargs -0 ln -s -t "$path" 2>/dev/null || true
  printf '%s\n' "$path"
}

# held: whether the process of hold_at has reached its wait
held() {
  [[ -e $STUB_OUT/held ]]
}

# hold_at import|run: writes program.py, which imports the module heavy, and waits during the import or in the ranks
hold_at() {
  local -r hold='import os, time; open(os.path.join(os.environ["STUB_OUT"], "held"), "w").close(); time.sleep(600)'
  : >heavy.py
  printf 'import heavy\n%s\n' "$hold" >program.py
  [[ $1 == run ]] || { printf 'import heavy\n' >program.py && printf '%s\n' "$hold" >heavy.py; }
}
