#!/usr/bin/env bats
# What a person sees on a machine where nothing here can work: one line that says what is needed.
#
# OLD_BASH_BUILDS names a folder with real old builds, VERSION/bin/bash, for the last test.

# bats file_tags=thorough
load ../helper

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

@test "a PYTHON that is no Python, or the folder of an environment: one line, and in Chinese" {
  mkdir -p env/bin empty
  ln -s "$PYTHON" env/bin/python
  local -r real=$PYTHON ls=$(command -v ls)
  for script in ascend4p.sh check_network.sh; do
    for PYTHON in "$ls" ls cat bash yes; do
      refused 78 "$script: PYTHON=$PYTHON is not a Python; set it to a Python of 3.9 or later, or unset it" bash "$SCRIPTS/$script" config.yaml
    done
    PYTHON="env" refused 78 "$script: PYTHON=env is a folder; set it to env/bin/python" bash "$SCRIPTS/$script" config.yaml
    PYTHON=empty refused 78 "$script: PYTHON=empty is not a program; *" bash "$SCRIPTS/$script" config.yaml
    PYTHON=ls LAUNCH_LANG=zh refused 78 "$script: PYTHON=ls 不是 Python；*" bash "$SCRIPTS/$script" config.yaml
    PYTHON=env LAUNCH_LANG=zh refused 78 "$script: PYTHON=env 是文件夹；请把它设为 env/bin/python" bash "$SCRIPTS/$script" config.yaml
  done
  like any_name <<<"exec $(printf %q "$real") \"\$@\""
  PYTHON=./any_name launch ascend2p.sh --dry_run config.yaml
}

@test "an empty PATH, and one without readlink: what is missing is Python, and with PYTHON the launch starts" {
  local -r bash=$(command -v bash)
  for path in '' "$PWD/nothing"; do
    refused 78 "ascend4p.sh: no python on PATH; *" env -u PYTHON PATH="$path" "$bash" "$SCRIPTS/ascend4p.sh" config.yaml
    ends 0 '' env PATH="$path" "$bash" "$SCRIPTS/ascend2p.sh" --device_target CPU --dry_run --train_script "$FIXTURES/stub_trainer.py" config.yaml
  done
}

@test "without PATH a Python that does not find itself has a name in messages" {
  env -i "$(command -v env)" python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null || skip 'needs a Python 3.9 in /usr/bin'
  refused 2 'watch.py: /*python* has no rich; *' env -i "$(command -v env)" python3 -c "
import sys
sys.argv, sys.modules['rich'] = ['watch.py'], None
sys.path.insert(0, '$PROJECT')
from hccl_tools.machine import interpreter
interpreter.find = interpreter.refuse('has no rich', 'install it', None, 2)"
}

@test "a terminal, a home or a locale that is not there, and streams that are closed: the ranks run" {
  stubbed ascend2p.sh --device_target CPU config.yaml
  ends 0 '*exit 0*' env -u HOME -u TERM LANG=xx_YY "${STUBBED[@]}"
  ends 0 '*exit 0*' env HOME=/dev/null TERM=nothing LC_ALL=C "${STUBBED[@]}"
  "${STUBBED[@]}" >&- 2>&- <&-
  "${STUBBED[@]}" 2>/dev/full
  "${STUBBED[@]}" >/dev/full
  ends 78 'ascend2p.sh: cannot write to stdout: *' bash -c '"$@" >/dev/full' - bash "$SCRIPTS/ascend2p.sh" --help
}

@test "a folder that is gone: one line that says so, from a script and from commands" {
  mkdir gone
  local command
  for command in "bash $SCRIPTS/ascend2p.sh config.yaml" "python $PROJECT/tools/watch.py" "python $PROJECT/tools/train.py --config x.yaml"; do
    run --separate-stderr bash -c "cd gone; rmdir ../gone; $command"
    mkdir gone
    [[ $status -ne 0 && ${stderr##*$'\n'} == *': the current folder cannot be used: No such file or directory; change to another one' ]] || fail "$command: $stderr"
    [[ $stderr != *Traceback* ]] || fail "$stderr"
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
  like python3.8 <<<"exec $PYTHON $(printf %q "$PWD/old.py") \"\$@\""
  local script words
  for script in $(scripts); do
    words=$(arguments "$script")
    # shellcheck disable=SC2086 # words
    PYTHON=$PWD/python3.8 run --separate-stderr bash "$SCRIPTS/$script" $words
    if [[ $script == check_network.sh || $script == preflight.sh ]]; then # Python commands, whose code it is
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
