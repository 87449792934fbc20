#!/usr/bin/env bats
# What TAB offers: options and values of the scripts and Python commands, in every way to type them.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
  cd "$PROJECT" || return 1
  source scripts/completion.bash
}

# compopt OPTION...: what is asked of bash, which takes it in a real completion only.
compopt() {
  COMPOPT+=("$@")
}

# offered WORD...: what is offered for the last word of this command line, in REPLY.
offered() {
  local last=${*: -1}
  COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMPREPLY=() COMPOPT=()
  COMP_POINT=${#COMP_LINE}
  _mindspore_launch "$1" "${last##*=}" "${*: -2:1}"
  REPLY=${COMPREPLY[*]-}
}

# offers EXPECTED WORD...
offers() {
  local -r expected=$1
  shift
  offered "$@"
  [[ $REPLY == "$expected" ]] || fail "for: $*" "offered:  $REPLY" "expected: $expected"
}

# lists folders|files|nothing WORD...: what bash itself lists, because nothing is offered.
lists() {
  local expected
  case $1 in
    folders) expected='-o dirnames +o default +o bashdefault' ;;
    files) expected='' ;;
    nothing) expected='+o default +o bashdefault' ;;
  esac
  offers '' "${@:2}"
  [[ ${COMPOPT[*]-} == "$expected" ]] || fail "for: ${*:2}" "compopt ${COMPOPT[*]-}" "expected: $expected"
}

@test "options of a script, however it is started" {
  offers '--device_target --devices' bash scripts/ascend4p.sh --dev
  offers '--device_target --devices' ./scripts/ascend4p.sh --dev
  offers '--device_target --devices' "$PROJECT/scripts/ascend4p.sh" --dev
  offers '--device_target --devices' sh -x scripts/ascend4p.sh configs/x.yaml --dev
  cd scripts
  offers '--device_target --devices' bash ascend4p.sh --dev
}

@test "every option that --help has, and no other" {
  local script expected
  for script in scripts/*.sh; do
    expected=$(bash "$script" --help | grep -oE '^  (-[a-zA-Z]( [A-Z]+)?, )?--[a-z_]+' | grep -oE -e '--[a-z_]+' | sort | paste -sd ' ')
    offers "$expected" bash "$script" --
  done
}

@test "options of Python commands" {
  offers '--visible_devices' python hccl_tools/hccl_tools.py --vis
  offers '--help' python3 hccl_tools/merge_hccl.py --he
  offers '--config' python -B tools/train.py --co
}

@test "hyphens where hyphens were begun" {
  offers '--device-target' bash scripts/ascend4p.sh --device-
  offers '--against-host' python hccl_tools/validate_hccl.py --against-
  offers '--against_host' python hccl_tools/validate_hccl.py --against
}

@test "the values of an option, also after =" {
  offers 'Ascend GPU CPU' bash scripts/ascend4p.sh --device_target ''
  offers 'CPU' bash scripts/ascend4p.sh --device-target C
  offers 'all' bash scripts/ascend4p.sh --console=al
  offers '0 all table none' bash scripts/ascend4p.sh --console=
  offers 'True False' bash scripts/ascend4p.sh --bind_core ''
  offers '910A' python hccl_tools/validate_hccl.py --generation 91
  lists folders bash scripts/ascend4p.sh --log_dir doc
  lists nothing bash scripts/ascend4p.sh --timeout ''
}

@test "programs and configs, and no other files" {
  touch "$BATS_TEST_TMPDIR"/{train.py,train.yaml,train.txt,trainer}
  chmod +x "$BATS_TEST_TMPDIR/trainer"
  mkdir "$BATS_TEST_TMPDIR/training"
  local -r at=$BATS_TEST_TMPDIR/train
  offers "$at.py $at.yaml ${at}er ${at}ing" bash scripts/ascend4p.sh "$at"
  [[ ${COMPOPT[*]} == '-o filenames' ]]
}

@test "files are left to bash: an option's file, what stands after --" {
  lists files bash scripts/ascend4p.sh --rank_table hccl_
  lists files bash scripts/ascend4p.sh config.yaml -- --dev
  lists files bash scripts/asc
}

@test "the words of a program are its own: nothing of ours is offered there" {
  offers '' bash scripts/launch.sh -n 2 train.py --dev
  offers '' bash scripts/launch.sh -n 2 python train.py --con
  offers '' bash scripts/run.sh data 8 start.sh --dev
  offers '' bash scripts/launch.sh -n 2 -m package --device_target ''
  offers '--device_target --devices' bash scripts/launch.sh --train_script train.py --dev
  offers '--device_target --devices' bash scripts/launch.sh --pytest=test_x.py --dev
  offers '--device_target --devices' bash scripts/launch.sh config.yaml --dev
}

@test "a script that is not ours is completed as before" {
  echo : >"$BATS_TEST_TMPDIR/other.sh"
  offers '' bash "$BATS_TEST_TMPDIR/other.sh" --dev
  before() { COMPREPLY=(theirs); }
  complete -F before bash
  _mindspore_launch_register
  offers theirs bash "$BATS_TEST_TMPDIR/other.sh" --dev
  offers theirs bash --ver
  offers '--device_target --devices' bash scripts/ascend4p.sh --dev
}

@test "in a real shell: TAB completes the command line" {
  printf 'PS1="ready> "\nsource scripts/completion.bash\n' >"$BATS_TEST_TMPDIR/rc"
  run python - "$BATS_TEST_TMPDIR/rc" <<'PY'
import os, pty, select, sys, time

pid, terminal = pty.fork()
if pid == 0:
    os.execvpe("bash", ["bash", "--noprofile", "--rcfile", sys.argv[1], "-i"], {**os.environ, "TERM": "dumb"})
seen = ""


def until(text):
    global seen
    end = time.time() + 20
    while text not in seen:
        if not select.select([terminal], [], [], max(0, end - time.time()))[0]:
            sys.exit(f"never seen: {text}; seen: {seen}")
        seen += os.read(terminal, 1000).decode()
    seen = seen.partition(text)[2]


until("ready> ")
os.write(terminal, b"bash scripts/ascend4p.sh --wait_\t")
until("--wait_for_devices ")
os.write(terminal, b"\x15exit\n")
until("exit")
PY
  [[ $status -eq 0 ]] || fail "$output"
}

@test "sourcing it twice, and with set -u, changes nothing and says nothing" {
  run bash -uc 'source scripts/completion.bash; source scripts/completion.bash; complete -p bash run_gpu.sh'
  [[ $status -eq 0 ]]
  [[ $output == $'complete -o bashdefault -o default -F _mindspore_launch bash\ncomplete -o bashdefault -o default -F _mindspore_launch run_gpu.sh' ]] || fail "$output"
}
