#!/usr/bin/env bats
# The doctor as a command: how it is called, its exit codes, and the page where there is no Python.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
  unset HCCL_IF_BASE_PORT SLURM_JOB_ID
  # A PATH with nothing but what the shell's own page uses.
  BARE=$BATS_TEST_TMPDIR/bare
  mkdir "$BARE"
  for name in bash readlink sed uname date sort paste timeout env sleep; do
    ln -s "$(command -v "$name")" "$BARE/$name"
  done
}

# python_that SCRIPT...: an interpreter that does what the lines of bash say.
python_that() {
  printf '%s\n' '#!/usr/bin/env bash' "$@" >"$BARE/python"
  chmod +x "$BARE/python"
}

# json EXPRESSION: a part of the page in `output`, which is `d` in Python.
json() {
  "$PYTHON" -c 'import json, sys; d = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1" <<<"$output"
}

@test "the page of this machine: every section, nothing on stderr, exit 0 or 1 as it says" {
  run --separate-stderr bash "$SCRIPTS/doctor.sh"
  [[ -z "$stderr" ]] || fail "$stderr"
  for title in System Versions NPUs GPUs Limits Network Programs; do
    [[ " ${lines[*]} " == *" $title "* ]] || fail "no section $title: $output"
  done
  [[ $output == *"bash "*"$BASH_VERSION"* ]]
  last=${lines[${#lines[@]}-1]}
  if [[ $last == *problem*,* ]]; then [[ "$status" -eq 1 ]]; else [[ "$status" -eq 0 ]]; fi
}

@test "--json is JSON with the same lines, and the exit code goes with its status" {
  run --separate-stderr bash "$SCRIPTS/doctor.sh" --json
  [[ "$(json 'd["status"] == "problem"')" == "$([[ $status -eq 1 ]] && echo True || echo False)" ]]
  [[ "$(json 'len(d["lines"]) == sum(d["counts"].values())')" == True ]]
}

@test "--help: the header, every option and the exit codes" {
  ends 0 '*' bash "$SCRIPTS/doctor.sh" --help
  [[ $output == *"Usage: bash $SCRIPTS/doctor.sh [options]"*Example:*'Exit: 0 no problem, 1 problems, 2 usage.'* ]]
  for option in json log_dir hccn_conf help; do
    [[ $output == *"  --$option"* ]] || fail "no --$option"
  done
}

# misused PATTERN WORD...: exit 2, one line that fits, no page.
misused() {
  refused 2 "doctor.sh: $1; see: bash * --help" bash "$SCRIPTS/doctor.sh" "${@:2}"
}

@test "an unknown option" { misused 'unknown option --nope' --nope; }
@test "an unknown short option: there is no trainer to give it to" { misused 'unknown option -x' -x; }
@test "an option in place of a value" { misused '--log_dir needs a value: --log_dir DIR' --log_dir --format text; }
@test "a format that there is not" { misused '--format xml: write one of text, json' --format xml; }
@test "an option of the launching scripts only" { misused 'unknown option --rank_table' --rank_table x.json; }
@test "an argument" { misused 'one argument too many: config.yaml' config.yaml; }
@test "trainer arguments" { misused 'unknown option --' -- --format json; }

@test "hyphens and underscores are the same, and a folder may have any name" {
  mkdir -- '-my logs 世界'
  run --separate-stderr bash "$SCRIPTS/doctor.sh" --format json --log-dir '-my logs 世界'
  [[ "$(json '[l["text"] for l in d["lines"] if l["name"] == "log folder"][0].endswith("/-my logs 世界")')" == True ]]
}

@test "called with sh, through a link, from another folder" {
  ln -s "$SCRIPTS/doctor.sh" "$BATS_TEST_TMPDIR/my doctor.sh"
  cd /
  run --separate-stderr sh "$BATS_TEST_TMPDIR/my doctor.sh"
  [[ $output == *'Report of this machine, '*'its packages'* ]] || fail "$output$stderr"
}

@test "a reader that has had enough is no error" {
  run --separate-stderr bash -c 'bash "$0" | :' "$SCRIPTS/doctor.sh"
  [[ -z "$stderr" ]] || fail "$stderr"
}

@test "a full disk under stdout is said, exit 2" {
  [[ -w /dev/full ]] || skip "no /dev/full"
  ends 2 'doctor.sh: cannot write to stdout: No space left on device' bash -c 'bash "$0" >/dev/full' "$SCRIPTS/doctor.sh"
}

@test "no colours in a pipe; on a terminal only where they are wanted" {
  need script
  export TERM=xterm
  [[ "$(bash "$SCRIPTS/doctor.sh")" != *$'\e'* ]]
  [[ "$(script -qec "bash '$SCRIPTS/doctor.sh'" /dev/null </dev/null)" == *$'\e[32mok'* ]]
  [[ "$(NO_COLOR=1 script -qec "bash '$SCRIPTS/doctor.sh'" /dev/null </dev/null)" != *$'\e'* ]]
}

@test "an environment with nothing in it" {
  run --separate-stderr env -i "$(command -v bash)" "$SCRIPTS/doctor.sh"
  [[ -z "$stderr" ]] || fail "$stderr"
  [[ $output == *'Report of this machine, '* ]] || fail "$output"
  [[ $output != *'->  -m pip'* ]] || fail "$output"
}

@test "nothing is written" {
  before=$(find . | sort)
  run bash "$SCRIPTS/doctor.sh" --log_dir new/logs
  [[ "$(find . | sort)" == "$before" ]]
}

# ---- no Python that can make the page --------------------------------------------------------------

# shell_page INTERPRETER PATTERN: with that in PYTHON, exit 1 and the shell's page, whose Python line fits the
# pattern; the same as JSON.
shell_page() {
  ends 1 '*' env PYTHON="$1" PATH="$BARE" bash "$SCRIPTS/doctor.sh"
  [[ -z "$stderr" ]] || fail "$stderr"
  # shellcheck disable=SC2053 # a pattern is meant
  [[ $output == *"  problem  Python      "$2$'\n'*'-> activate an environment with Python 3.9 or later'* ]] || fail "$output"
  [[ $output == *'  kernel '*'1 problem: fix it before you launch.' ]] || fail "$output"
  ends 1 '*' env PYTHON="$1" PATH="$BARE" bash "$SCRIPTS/doctor.sh" --format json
  # shellcheck disable=SC2053 # a pattern is meant
  [[ "$(json '[l["text"] for l in d["lines"] if l["name"] == "Python" and l["status"] == "problem"][0]')" == $2 ]] || fail "$output"
  [[ "$(json 'd["status"], len(d["lines"]) == sum(d["counts"].values())')" == "('problem', True)" ]] || fail "$output"
}

@test "no python on PATH" { shell_page '' 'no python on PATH'; }
@test "PYTHON that is not a program, whatever is in its name" { shell_page '/no/"such\&' 'PYTHON=/no/\"such\\& is not a program'; }
@test "a Python that is too old" {
  python_that 'echo 3.7.5'
  shell_page '' '*/python is Python 3.7.5; 3.9 or later is needed'
}
@test "a Python 2" {
  python_that 'echo 2.7.18'
  shell_page "$BARE/python" '*/python is Python 2.7.18; 3.9 or later is needed'
}
@test "a Python that does not start" {
  python_that 'echo "error while loading shared libraries" >&2; exit 127'
  shell_page '' '*/python does not start'
}
@test "the home folder is not in the page" {
  export HOME=$BATS_TEST_TMPDIR/home/alice
  shell_page "$HOME/python" 'PYTHON=~/python is not a program'
}
