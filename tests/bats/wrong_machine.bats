#!/usr/bin/env bats
# What a person sees on a machine where nothing here can work: one line that says what is needed.
#
# OLD_BASH_BUILDS names a folder with real old builds, VERSION/bin/bash, for the last test.

# bats file_tags=thorough
load helper

setup() {
  setup_world
  HCCN=()
}

# scripts: the names of all that a user starts and that launches or looks at the network.
scripts() {
  local path
  for path in "$SCRIPTS"/*.sh; do
    [[ $path == */doctor.sh ]] || printf '%s\n' "${path##*/}"
  done
}

# pretend SYSTEM: from now on SCRIPTS is a copy of the scripts, in which bash has told them that it was built for SYSTEM.
pretend() {
  export PRETENDED=$1
  rm -rf "$BATS_TEST_TMPDIR/copy"
  mkdir "$BATS_TEST_TMPDIR/copy"
  cp -r "$PROJECT/scripts" "$BATS_TEST_TMPDIR/copy"
  SCRIPTS=$BATS_TEST_TMPDIR/copy/scripts
  sed -i 's/BASH_VERSINFO\[5\]/PRETENDED/g' "$SCRIPTS/lib/start.sh" "$SCRIPTS/doctor.sh"
}

@test "macOS: every script says that Linux is needed" {
  pretend arm64-apple-darwin23
  for script in $(scripts); do
    refused 78 "$script: this is macOS; Linux is needed: *" bash "$SCRIPTS/$script" --help
  done
}

@test "another system is named as bash names it" {
  pretend x86_64-pc-cygwin
  refused 78 "ascend4p.sh: this is x86_64-pc-cygwin; Linux is needed: *" bash "$SCRIPTS/ascend4p.sh" config.yaml
}

@test "the doctor: macOS is a problem on its page, and so is a Python that is not there" {
  pretend arm64-apple-darwin23
  ends 1 '' bash "$SCRIPTS/doctor.sh"
  [[ $output == *'problem  OS          macOS; Linux is needed'* ]] || fail "$output"
  [[ $output == *'ok       Python      '*'1 problem: fix it before you launch.'* ]] || fail "$output"
  ends 1 '' env PYTHON=/no/such/python bash "$SCRIPTS/doctor.sh"
  [[ $output == *'problem  OS          macOS; Linux is needed'* ]] || fail "$output"
  [[ $output == *'problem  Python      PYTHON=/no/such/python is not a program'* ]] || fail "$output"
  [[ $output == *'2 problems: fix them before you launch.'* ]] || fail "$output"
}

@test "macOS and no Python are said in Chinese, too" {
  pretend arm64-apple-darwin23
  LAUNCH_LANG=zh refused 78 'ascend4p.sh: 这里是 macOS；需要 Linux：*' bash "$SCRIPTS/ascend4p.sh" config.yaml
  LAUNCH_LANG=zh ends 1 '' bash "$SCRIPTS/doctor.sh"
  [[ $output == '本机报告，'*'macOS；需要 Linux'*'1 个问题：'* ]] || fail "$output"
  LAUNCH_LANG=zh PYTHON=/no/such/python refused 78 'ascend4p.sh: PYTHON=/no/such/python 不是程序；*' bash "$PROJECT/scripts/ascend4p.sh" config.yaml
}

@test "the lab: macOS" {
  OSTYPE=darwin23 ends 1 'lab.sh: this is macOS; hosts in namespaces need Linux' bash "$PROJECT/tests/lab/lab.sh" shell
}

@test "no interpreter, one that is none, one that is too old: every script that needs one says so" {
  mkdir bin
  local program
  for program in bash readlink mkdir rm dirname basename; do
    ln -s "$(command -v "$program")" "bin/$program"
  done
  unset PYTHON
  for script in ascend4p.sh check_network.sh; do
    refused 78 "$script: no python on PATH; activate the environment that has MindSpore*" \
      env PATH="$PWD/bin" bash "$SCRIPTS/$script" config.yaml
    PYTHON=/no/such/python refused 78 "$script: PYTHON=/no/such/python is not a program; *" bash "$SCRIPTS/$script" config.yaml
  done
}

# arguments SCRIPT: as many words as its usage has.
arguments() {
  bash "$SCRIPTS/$1" --help | sed -n "s/.*$1 \[options\] //p" | sed -n 1p | grep -oE '\b[A-Z_:,]{4,}' | sed 's/.*/1/' | paste -sd ' '
}

# like PROGRAM: the program python, started by what is on stdin.
like() {
  printf '#!/usr/bin/env bash\n' >"$1"
  cat >>"$1"
  chmod +x "$1"
}

@test "an old Python: every script says that 3.9 is needed" {
  echo 'import runpy, sys
sys.version_info = (3, 8, 18, "final", 0)
sys.argv = [word for word in sys.argv[1:] if word not in ("-E", "-s")]
runpy.run_path(sys.argv[0], run_name="__main__")' >old.py
  like old_python <<<"exec $PYTHON $(printf %q "$PWD/old.py") \"\$@\""
  local script words
  for script in $(scripts); do
    words=$(arguments "$script")
    # shellcheck disable=SC2086 # words
    PYTHON=$PWD/old_python run --separate-stderr bash "$SCRIPTS/$script" $words
    if [[ $script == check_network.sh ]]; then # a Python command, whose code it is
      [[ $status -eq 2 && $stderr == *" is Python 3.8; 3.9 or later is needed; "* ]] || fail "$stderr"
    else
      refused 78 "$script: * is Python 3.8; 3.9 or later is needed; *"
    fi
  done
}

@test "a Python without what the plan needs: one line, from every way to launch" {
  like bare_python <<<"exec $PYTHON -S \"\$@\""
  local -x PATH=$FIXTURES/many_agents:$PATH # an mpirun, because the plan asks for that first
  for script in ascend4p.sh run_cpu.sh run_mpirun.sh; do
    PYTHON=$PWD/bare_python refused 78 "$script: * cannot plan a launch: No module named 'yaml'; activate *" \
      bash "$SCRIPTS/$script" config.yaml
  done
}

@test "typed in another folder, by a relative path" {
  mkdir -p deep/er
  cd deep/er
  ends 0 '*' launch ascend2p.sh --hccn_conf ../../hccn.conf ../../config.yaml
}

@test "real old builds of bash, where there are some" {
  [[ -n ${OLD_BASH_BUILDS-} ]] || skip 'OLD_BASH_BUILDS names no folder'
  local build version tried=0
  for build in "$OLD_BASH_BUILDS"/*/bin/bash; do
    version=$("$build" -c 'echo "$BASH_VERSION"')
    for script in $(scripts); do
      ends 0 '' "$build" "$SCRIPTS/$script" --help
      [[ $output == "$(bash "$SCRIPTS/$script" --help)" ]] || fail "$output"
    done
    run --separate-stderr env PYTHON=/no/such/python "$build" "$SCRIPTS/doctor.sh"
    [[ $output == *"$version"* && -z $stderr ]] || fail "$output$stderr"
    tried=$((tried + 1))
  done
  ((tried))
}
