#!/usr/bin/env bats
# What comes from a file, a program or another person never commands the terminal of the one who reads our messages.

# bats file_tags=thorough
load ../helper

# It sets the terminal's title, clears the screen, does so with a C1 character, and turns the direction of text.
EVIL=$'\e]0;x\a\e[2J\302\2332J\342\200\256'

setup() {
  setup_world
}

# harmless STATUS PATTERN COMMAND...: the command ends so, and nothing that it prints commands a terminal.
harmless() {
  run --separate-stderr "${@:3}"
  was "$1" "*" || return
  # shellcheck disable=SC2053 # a pattern is meant
  [[ $output$stderr == $2 ]] || fail "it prints: $output" "$stderr" || return
  clean "$output$stderr"
}

# clean TEXT: it has no control characters but tabs and ends of lines, and does not change the direction of text.
clean() {
  ! LC_ALL=C grep -aqP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xa8-\xae]' <<<"$1" \
    || fail "not harmless: $(cat -v <<<"$1")"
}

@test "a config: its name, its keys, its values" {
  printf 'system:\n  distribute: "%s"\n' '\e]0;x\a\x9b2J\u202e' >"$EVIL.yaml"
  harmless 78 '*x1b]0;x*' launch ascend1p.sh --train_script "$PROJECT/tools/train.py" "$EVIL.yaml"
  printf '"\\e]0;x\\a\\x9b2J\\u202e": 1\nsystem:\n  distribute: False\n' >c.yaml
  harmless 78 '*x1b]0;x*' launch ascend1p.sh --train_script "$PROJECT/tools/train.py" c.yaml
  harmless 78 '*' launch ascend1p.sh --train_script "$PROJECT/tools/train.py" c.yaml -- -o "a$EVIL=$EVIL"
}

@test "options, arguments, folders and variables" {
  harmless 2 '*x1b]0;x*' launch ascend1p.sh "--$EVIL" config.yaml
  harmless 2 '*' launch ascend1p.sh --devices "$EVIL" config.yaml
  harmless 78 '*x1b]0;x*' launch ascend1p.sh --log_dir "config.yaml/$EVIL" config.yaml
  harmless 78 '*E]0;x*' env PYTHON="$EVIL" bash "$SCRIPTS/ascend1p.sh" config.yaml
  harmless 2 '*x1b]0;x*' python "$PROJECT/hccl_tools/validate_hccl.py" "--no_such$EVIL"
  harmless 1 '*E]0;x*' env PYTHON="$EVIL" bash "$SCRIPTS/doctor.sh"
  printf 'system:\n  distribute: False\n' >config.yaml
  mkdir "$EVIL"
  harmless 0 '*exit 0;*' launch ascend1p.sh --log_dir "$EVIL" config.yaml
}

@test "a name of the script" {
  ln -s "$SCRIPTS/ascend1p.sh" "$EVIL.sh"
  harmless 2 '*x1b]0;x*' bash "$EVIL.sh"
  harmless 78 '*x1b]0;x*' bash "$EVIL.sh" nix.yaml
}

@test "hosts: of a hostfile, and of an argument" {
  HCCN=()
  printf '%s slots=1\n' "$EVIL" >hosts
  harmless 78 '*hosts:1: *x1b]0;x*' launch run_mpirun_2.sh hosts
  harmless 2 '*x1b]0;x*' launch run_mpirun_1.sh "$EVIL:1"
}

@test "a rank table: what is wrong with it, and its pictures" {
  python - "$EVIL" <<'PY'
import json, sys

devices = [{"device_id": "0" + sys.argv[1], "device_ip": sys.argv[1], "rank_id": "0"}]
servers = [{"server_id": sys.argv[1], "device": devices, sys.argv[1]: 1}]
table = {"version": "1.0", "server_count": "1", "server_list": servers, "status": sys.argv[1], sys.argv[1]: 1}
json.dump(table, open("t.json", "w"), ensure_ascii=False)
PY
  harmless 1 '*x1b]0;x*' python "$PROJECT/hccl_tools/validate_hccl.py" t.json
  harmless 1 '*' python "$PROJECT/hccl_tools/validate_hccl.py" --format json t.json
  harmless 0 '*x1b]0;x*' python "$PROJECT/hccl_tools/show_hccl.py" t.json
  harmless 0 '*x1b]0;x*' python "$PROJECT/hccl_tools/show_hccl.py" --format svg t.json
  harmless 1 '*' python "$PROJECT/hccl_tools/merge_hccl.py" t.json t.json
  harmless 1 '*x1b]0;x*' python "$PROJECT/hccl_tools/convert_hccl.py" t.json --to 1.2
  harmless 2 '*x1b]0;x*' python "$PROJECT/hccl_tools/diff_hccl.py" t.json t.json
}

@test "the answers of hccn_tool" {
  printf '#!/bin/sh\nprintf "%%s\\n" "ipaddr:%s" "$EVIL"\nprintf "%%s\\n" "$EVIL" >&2\nexit 1\n' "\$EVIL" >hccn_tool
  chmod +x hccn_tool
  printf '{"version": "1.0", "server_count": "1", "status": "completed", "server_list": [{"server_id": "127.0.0.1",
    "device": [{"device_id": "0", "device_ip": "10.1.1.1", "rank_id": "0"}]}]}' >t.json
  export EVIL PATH=$PWD:$PATH
  harmless 1 '*x1b]0;x*' python "$PROJECT/hccl_tools/hccl_tools.py" --device_num 0
  harmless 1 '*x1b]0;x*' python "$PROJECT/hccl_tools/check_network.py" t.json
  harmless 1 '*x1b]0;x*' python "$PROJECT/hccl_tools/check_network.py" --format json t.json
}

@test "a rank's last words, in the explanation of the launch and of diagnose.py" {
  printf 'import os\nraise ValueError(os.environ["EVIL"])\n' >"$EVIL.py"
  printf 'system:\n  distribute: False\n' >config.yaml
  export EVIL
  run --separate-stderr launch ascend1p.sh --console none --train_script "$EVIL.py" config.yaml
  was 1 '*rank 0 (device 0) failed first: ValueError: *\\x9b2J*'
  clean "$(grep -v '^    ' <<<"$stderr")" # the lines of the log itself
  harmless 0 '*rank 0 (device 0) failed first: ValueError: *\\x9b2J*' python "$PROJECT/tools/diagnose.py" logs/latest
  python - "$EVIL" <<'PY'
import json, sys

record = json.load(open("logs/latest/launch.json"))
record["outcome"]["first_failure"] = sys.argv[1]
record["outcome"]["members"] = {sys.argv[1]: {"status": 3, "seconds": 1}}
json.dump(record, open("logs/latest/launch.json", "w"))
PY
  harmless 0 '*x1b]0;x*' python "$PROJECT/tools/diagnose.py" logs/latest
  printf -- '- code: "%s"\n' '\e]0;x\a' >known.yaml
  harmless 0 '*' env LAUNCH_DIAGNOSES=known.yaml python "$PROJECT/tools/diagnose.py" logs/latest
}
