#!/usr/bin/env bats
# Every wrong thing a person would type: one clear line on stderr, its exit code, nothing started,
# nothing written.

load ../helper

setup() {
  setup_world
}

# refuses STATUS PATTERN ARGUMENT...: ascend4p.sh on CPU with these arguments; all_refused asks it
refuses() {
  refused_later "$1" "$2" launch ascend4p.sh "${@:3}"
}

# refuses_own STATUS PATTERN ARGUMENT...: the same with the project's own trainer, the only one whose configs are judged
refuses_own() {
  refused_later "$1" "$2" bash "$SCRIPTS/ascend4p.sh" --device_target CPU "${@:3}"
}

# ---- the command line

# bats test_tags=slow
@test "the command line: what is missing, unknown, too many, or no value" {
  refuses_own 2 'ascend4p.sh: PROGRAM or CONFIG is missing; see: bash *--help'
  refuses 2 '*one argument too many: 8*' config.yaml 8
  refuses 2 '*unknown option -o; trainer arguments come after --*' config.yaml -o a=b
  refuses 2 '*unknown option --a\\nb*' $'--a\nb' config.yaml
  refuses 2 '*--devices needs a value: --devices RANGE*' config.yaml --devices
  refuses 2 '*--devices needs a value*' --devices --dry_run config.yaml
  refuses 2 '*--log_dir needs a value*' --log_dir= config.yaml
  refuses 2 '*--no_check takes no value*' --no_check=1 config.yaml
  refuses 2 '*--grace 1x is not a time: write whole seconds*' --grace 1x config.yaml
  refuses 2 '*--device_target TPU: ascend4p.sh takes Ascend and CPU' --device_target TPU config.yaml
  refuses 2 '*unknown option --devcies*' --devcies=4 config.yaml
  all_refused
}

# ---- devices

# bats test_tags=slow
@test "devices: a wrong number of them, a device twice, two groups of a 910A host, no such range or generation" {
  refuses 2 '*"\[3,6)" names 3 (3,4,5), ascend4p.sh starts 4*' --devices "[3,6)" config.yaml
  refuses 2 '*names 5 (0,1,2,3,4)*' --devices 0,1,2,3,4 config.yaml
  refuses 2 '*use scripts/ascend8p.sh' --devices "[0,8)" config.yaml
  refuses 2 '*names device 4 twice*' --devices 4,5,4,6 config.yaml
  refuses 2 '*devices 2-5 are not linked on a 910A host; use *' --generation 910A --devices "[2,6)" config.yaml
  refuses 2 '*--generation 910B: write 910A, A2, A3, 950 or any' --generation 910B config.yaml
  refuses 2 "*'(' is not allowed in it*" --devices "(0,4]" config.yaml
  refuses 2 "*'，' is not an ASCII character*" --devices "[4，8)" config.yaml
  all_refused
}
# bats test_tags=thorough
@test "a table that hccl_tools.py builds is one that the launch takes: both apply the rules of a chip that is known or named" {
  [[ ! -e /sys/bus/pci/devices ]] || ! grep -qsx 0x19e5 /sys/bus/pci/devices/*/vendor || skip "this machine has NPUs"
  local chip
  for chip in '' any A2; do
    python "$PROJECT/hccl_tools/hccl_tools.py" ${chip:+--generation $chip} --device_num '[2,6)' --hccn_conf hccn.conf --output hccl_t.json
    ends 0 '*rank table: hccl_t.json, found in this folder*' launch ascend4p.sh ${chip:+--generation $chip} --devices '[2,6)' config.yaml
  done
  ends 2 '*devices 2-5 are not linked on a 910A host*' \
    python "$PROJECT/hccl_tools/hccl_tools.py" --generation 910A --device_num '[2,6)' --hccn_conf hccn.conf
}

# ---- the config

# refuses_text WHOSE NAME TEXT PATTERN: NAME.yaml, a config of this text; WHOSE: refuses or refuses_own
refuses_text() {
  printf '%b' "$3" >"$2.yaml"
  "$1" 78 "*$2.yaml$4" "$2.yaml"
}

# bats test_tags=slow
@test "a config that is not there, no file, empty, no YAML, not UTF-8, without sections, with a key twice" {
  refuses 78 '*nix.yaml: no such file; a relative path counts from *' nix.yaml
  mkdir d && refuses 78 '*d: is a folder*' d
  mkfifo f && refuses 78 '*f: is not a regular file*' f
  refuses_text refuses_own empty '' ': is empty; start from one of the files in configs/'
  refuses_text refuses_own comment '# x\n' ': is empty*'
  refuses_text refuses_own bad 'system:\n  distribute: [True\n' ':3: not YAML: *'
  refuses_text refuses_own byte 'a: \377\n' ': byte 4 is not UTF-8*'
  refuses_text refuses_own list '- 1\n' ': has no sections*'
  refuses_text refuses_own twice 'system:\n  distribute: True\n  distribute: False\n' ':3: distribute is on line 2 too*'
  refuses_own 78 '*-o epochs: write key=value*' config.yaml -- -o epochs
  all_refused
}
# bats test_tags=slow
@test "distribute: False, without a value (which counts as False for another trainer), or missing: the line to change" {
  local -r lenet5=$PROJECT/configs/mnist/lenet5_digits.yaml
  refuses_text refuses false 'model:\n  name: x\nsystem:\n  mode: 0\n  distribute: False\n' \
    ':5: /system/distribute: system.distribute is not True*write `distribute: True` under `system:`*'
  refuses_text refuses none 'system:\n  distribute:\n' \
    ':2: /system/distribute: system.distribute is not True*write `distribute: True` under `system:`*'
  # the project's own trainer: an unknown key, with the nearest known one
  sed 's/num_epochs/num_epoch/' "$lenet5" >typo.yaml
  all_refused
  ends 78 '*typo.yaml:20: /scheduler/num_epoch: no such key: "num_epoch"; did you mean "num_epochs"\?*' \
    bash "$SCRIPTS/ascend4p.sh" --device_target CPU typo.yaml
  sed '/distribute: True/d' "$lenet5" >c.yaml
  ends 78 '*c.yaml:4: /system: "distribute" is missing*read as a config of tools/train.py; name another trainer with --train_script FILE' \
    bash "$SCRIPTS/ascend4p.sh" --device_target CPU c.yaml
  [[ ! -e logs ]]
}
# bats test_tags=slow
@test "another trainer's config is not judged: no YAML of ours, several documents, tags, an unknown form of -o" {
  printf '%s\n' '---' 'a: !tag {b: 1}' '---' 'b: 2' >several.yaml
  launch ascend2p.sh several.yaml -- -o epochs
  printf 'not: [yaml' >text.yaml
  ends 0 '*note: text.yaml:[12]: not YAML: *; few trainers can read it as it is: correct it*' launch ascend2p.sh text.yaml
}
@test "distribute can be set on the command line" {
  echo 'system: {distribute: False}' >alone.yaml
  launch ascend2p.sh alone.yaml -- -o system.distribute=True
}

# ---- the trainer, the logs, the machine

# bats test_tags=slow
@test "a trainer or a folder of logs that cannot be one; addresses that are nowhere" {
  refused_later 78 '*--train_script nix.py: no such file*' \
    bash "$SCRIPTS/ascend4p.sh" --device_target CPU --train_script nix.py config.yaml
  refused_later 78 '*--pytest config.yaml: is a config, which is not a file of tests; name one' \
    bash "$SCRIPTS/ascend4p.sh" --device_target CPU --pytest config.yaml
  refused_later 78 '*--train_script config.yaml: is a config; name the Python file that trains, then the config' \
    bash "$SCRIPTS/ascend4p.sh" --device_target CPU --train_script config.yaml
  refused_later 78 '*--train_script .: is a folder*' bash "$SCRIPTS/ascend4p.sh" --device_target CPU --train_script . config.yaml
  refuses 78 '*config.yaml is not a folder*' --log_dir config.yaml/logs config.yaml
  refuses 78 '*--log_dir /proc/sys/logs cannot be written*' --log_dir /proc/sys/logs config.yaml
  refuses 78 '*/proc/logs*cannot be written*' --log_dir /proc/logs config.yaml
  refused_later 78 '*no address for devices 4-7: hccn_tool is not on PATH, and not in */driver/tools, and there is no nix.conf; *' \
    launch_npu ascend4p.sh --hccn_conf nix.conf config.yaml
  MS_SCHED_PORT=80 refuses 78 '*MS_SCHED_PORT=80 is not a port*' config.yaml
  all_refused
}
@test "a name that is nearly that of a file beside it: the file is named" {
  touch trainer.py hosts.txt
  refused_later 78 '*--train_script trainr.py: no such file; name the Python file that trains; did you mean trainer.py\?' \
    bash "$SCRIPTS/ascend4p.sh" --device_target CPU --train_script trainr.py config.yaml
  refused_later 78 '*: trianer.py: no such file in *; did you mean trainer.py\?' bash "$SCRIPTS/launch.sh" -n 2 trianer.py
  refused_later 78 '*: confg.yaml: no such file; *; did you mean config.yaml\?' bash "$SCRIPTS/launch.sh" -n 2 --config confg.yaml
  refused_later 78 '*: --pytest trainer.py.py: no such file in *; did you mean trainer.py\?' bash "$SCRIPTS/launch.sh" -n 2 --pytest trainer.py.py
  refused_later 78 '*HOSTFILE host.txt cannot be read: *; did you mean hosts.txt\?' bash "$SCRIPTS/run_mpirun_2.sh" --device_target CPU --config config.yaml host.txt
  refused_later 78 '*: nothing.py: no such file in *; correct the path' bash "$SCRIPTS/launch.sh" -n 2 nothing.py
  all_refused
}
@test "no NPU on this machine: what was looked for, and what to type instead" {
  [[ ! -e /dev/davinci4 ]] || skip "this machine has NPUs"
  refused 78 '*no Ascend NPU on this machine: looked for /dev/davinci4*; to try the launch without NPUs: bash */ascend4p.sh --device_target CPU --hccn_conf hccn.conf --train_script */stub_trainer.py config.yaml' \
    bash "$SCRIPTS/ascend4p.sh" --hccn_conf hccn.conf --train_script "$FIXTURES/stub_trainer.py" config.yaml
}
@test "NPUs that are not among those of this machine" {
  [[ ! -e /dev/davinci4 ]] || skip "this machine has NPUs"
  mkdir bin
  printf '#!/usr/bin/env bash\nprintf "\\tNPU ID                         Chip ID                        Chip Logic ID                  Chip Name\\n"\nfor i in 0 1 2 3; do printf "\\t%%-30s %%-30s %%-30s Ascend 910A\\n" $i 0 $i; done\n' >bin/npu-smi
  chmod +x bin/npu-smi
  PATH=$PWD/bin:$PATH refused 78 '*this launch needs devices 4-7, this machine has devices 0-3; choose from those with --devices' \
    bash "$SCRIPTS/ascend4p.sh" --hccn_conf hccn.conf --train_script "$FIXTURES/stub_trainer.py" config.yaml
  PATH=$PWD/bin:$PATH bash "$SCRIPTS/ascend4p.sh" --devices "[0,4)" --hccn_conf hccn.conf --train_script "$FIXTURES/stub_trainer.py" config.yaml
}
@test "a current folder that was deleted" {
  mkdir gone && cd gone && rmdir ../gone
  ends 78 '*the current folder cannot be used: No such file or directory; change to another one' \
    bash "$SCRIPTS/ascend4p.sh" --device_target CPU "$WORLD/config.yaml"
}
@test "a python that is not there" {
  PYTHON=/nix/python refused 78 '*PYTHON=/nix/python is not a program*' launch ascend4p.sh config.yaml
}
# bats test_tags=slow
@test "a scheduler's port that is in use" {
  python -c 'import socket, time
s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); print(s.getsockname()[1], flush=True); time.sleep(60)' >port 3>&- &
  local -r holder=$!
  eventually test -s port
  MS_SCHED_PORT=$(<port) refused 78 '*MS_SCHED_PORT=* is in use*' launch ascend4p.sh config.yaml
  kill "$holder"
}
# bats test_tags=slow
@test "a free port that the user asked for is taken" {
  MS_SCHED_PORT=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  export MS_SCHED_PORT
  launch ascend2p.sh config.yaml
  [[ "$(recorded rank_1 'r["env"]["MS_SCHED_PORT"]')" = "$MS_SCHED_PORT" ]]
}

# ---- the rank table

# table DEVICES [SERVER [NAME]]: a good table, as table.json or NAME
table() {
  python "$PROJECT/hccl_tools/hccl_tools.py" --device_num "$1" --hccn_conf hccn.conf --server_ip "${2:-127.0.0.1}" \
    --output "${3-table.json}" >/dev/null 2>&1
}

# bats test_tags=slow
@test "a rank table that is not there, empty, with comments, for other devices or another host, stale in the environment" {
  refuses 78 '*--rank_table: nix.json cannot be read: No such file*' --rank_table nix.json config.yaml
  : >t.json
  refuses 78 '*t.json: the file is empty*\[not-json\]' --rank_table t.json config.yaml
  table "[4,8)"
  sed '2s|$| // for HCCL|' table.json >comment.json
  refuses 78 '*comment.json: line 2, column 23: a comment; JSON has none; delete the comments \[not-json\]' --rank_table comment.json config.yaml
  sed 's/127.0.0.1/203.0.113.9/' table.json >host.json
  refuses 78 '*host.json is for server 203.0.113.9, which is not an address of this host*' --rank_table host.json config.yaml
  table "[0,4)" 127.0.0.1 four.json
  refuses 78 '*four.json is for devices 0-3, this launch is on devices 4-7; choose them with --devices "0,1,2,3"*' --rank_table four.json config.yaml
  RANK_TABLE_FILE=four.json refuses 78 '*RANK_TABLE_FILE (from your shell): four.json is for devices 0-3*' config.yaml
  table "[0,8)" 127.0.0.1 eight.json
  refuses 78 '*eight.json is for devices 0-7, this launch is on devices 4-7; name another table with --rank_table' --rank_table eight.json config.yaml
  all_refused
}
@test "a trainer, a program and data in a folder that may not be entered" {
  [[ "$(id -u)" -ne 0 ]] || skip "root may read everything"
  mkdir hidden && touch hidden/train.py && chmod 0 hidden
  refused 78 '*--train_script hidden/train.py cannot be read; check its permissions' \
    bash "$SCRIPTS/ascend4p.sh" --device_target CPU --train_script hidden/train.py config.yaml
  refused 78 '*hidden/train.py cannot be read; check its permissions' bash "$SCRIPTS/launch.sh" -n 2 hidden/train.py
  refused 78 '*the data in */hidden cannot be read; check its permissions' bash "$SCRIPTS/run.sh" --device_target CPU hidden 2
}
@test "a rank table that may not be read" {
  [[ "$(id -u)" -ne 0 ]] || skip "root may read everything"
  table "[4,8)" && chmod 0 table.json
  refused 78 '*table.json cannot be read: Permission denied*' launch ascend4p.sh --rank_table table.json config.yaml
}
@test "a rank table with two faults: one line each" {
  table "[4,8)"
  sed 's/completed/initializing/; s/"10.1.1.15"/"10.1.1.14"/' table.json >t.json
  ends 78 '*' launch ascend4p.sh --rank_table t.json config.yaml
  [[ "${#stderr_lines[@]}" -eq 2 ]]
  [[ $stderr == *'/server_list/0/device/1/device_ip'*'[duplicate-address]'*'/status'*'[bad-status]' ]]
}
# bats test_tags=slow
@test "a table in the folder is used when it fits" {
  python "$PROJECT/hccl_tools/hccl_tools.py" --device_num "[4,8)" --hccn_conf hccn.conf --server_ip 127.0.0.1 >/dev/null 2>&1
  run --separate-stderr launch_npu ascend4p.sh config.yaml
  [[ $stderr == *'rank table: hccl_4p_4567_127.0.0.1.json, found in this folder'* ]]
  [[ "$(recorded rank_0 'r["env"]["RANK_TABLE_FILE"]')" = "$WORLD/hccl_4p_4567_127.0.0.1.json" ]]
}
# bats test_tags=slow
@test "a table in the folder that does not fit is named, and another one built" {
  python "$PROJECT/hccl_tools/hccl_tools.py" --device_num "[0,4)" --hccn_conf hccn.conf --server_ip 127.0.0.1 >/dev/null 2>&1
  ends 0 '*rank tables not used: hccl_4p_0123_127.0.0.1.json (devices 0-3); *rank table: built for devices 4-7*' \
    launch_npu ascend4p.sh config.yaml
}

# bats test_tags=slow
@test "spare hosts and the least number of ranks: what cannot be is refused before anything is asked" {
  local -r hosts=127.0.0.2:1,127.0.0.3:1
  HCCN=()
  refused_later 2 'run_mpirun_1.sh: --spare 1: spare hosts are for restarts; add --max_restarts N' \
    launch run_mpirun_1.sh --config config.yaml --spare 1 "$hosts"
  refused_later 2 'run_mpirun_1.sh: --spare 2: the job has 2 hosts in all, and at least one must train' \
    launch run_mpirun_1.sh --config config.yaml --max_restarts 1 --spare 2 "$hosts"
  refused_later 2 'run_mpirun_1.sh: --min_ranks none is not a number from 1 to 65536' \
    launch run_mpirun_1.sh --config config.yaml --max_restarts 1 --min_ranks none "$hosts"
  printf '127.0.0.2 slots=1 spare\n127.0.0.3 slots=1 spare\n' >spare_hosts
  refused_later 2 'run_mpirun_2.sh: every host of the hostfile is spare; remove the word *' \
    launch run_mpirun_2.sh --config config.yaml --max_restarts 1 spare_hosts
  printf '127.0.0.2 slots=1\n127.0.0.3 slots=1 spares\n' >hosts
  refused_later 78 'run_mpirun_2.sh: HOSTFILE hosts:2: spares: no such word; for a spare host write the word spare alone' \
    launch run_mpirun_2.sh --config config.yaml --max_restarts 1 hosts
  refused_later 2 'ascend2p.sh: unknown option --spare*' launch ascend2p.sh --spare 1 config.yaml
  all_refused
}
