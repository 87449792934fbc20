#!/usr/bin/env bats
# What the environment of ranks comes from: the launch, the user's shell, the rank table. rank_environment.bats compares all
# of it, under every script.

load ../helper

setup() {
  setup_world
}

# bats test_tags=slow
@test "the scheduler sees the cluster, and neither a rank nor the rank table" {
  export STUB_DO='0: wait'
  launch_behind ascend2p.sh config.yaml
  eventually test -s "$STUB_OUT/scheduler.json"
  eventually ranks_up 0
  end_by TERM
  contract scheduler | grep -x MS_ROLE=MS_SCHED
  contract scheduler | grep -x MS_WORKER_NUM=2
  run ! grep -E '^(RANK_ID|DEVICE_ID|RANK_TABLE_FILE|MS_NODE_ID)=' <(contract scheduler)
}

# bats test_tags=slow
@test "one rank that is not distributed runs alone: no cluster, no rank table" {
  printf 'system:\n  distribute: False\n' >config.yaml
  launch ascend1p.sh config.yaml
  [[ "$(contract rank_0 | cut -d= -f1 | tr '\n' ' ')" = "DEVICE_ID DEVICE_NUM GLOG_v LOCAL_RANK LOCAL_WORLD_SIZE LOG_DIR OMP_NUM_THREADS ONEDNN_MAX_CPU_ISA PYTHONFAULTHANDLER RANK RANK_ID RANK_SIZE SERVER_ID WORLD_SIZE " ]]
}

# ---- what public trainers read ----------------------------------------------------------------------

# bats test_tags=slow
@test "DEVICE_NUM and the names of other launchers: a value of the user counts" {
  # shellcheck disable=SC2030 # each test has a shell of its own
  export DEVICE_NUM=16 RANK=5 LOCAL_RANK=6 WORLD_SIZE=7 LOCAL_WORLD_SIZE=8 MASTER_ADDR=10.0.0.9 MASTER_PORT=6000 SERVER_ID=9
  local -ra names=(DEVICE_NUM RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT SERVER_ID RANK_ID RANK_SIZE)
  ends 0 '*ascend2p.sh: note: all 2 ranks get RANK=5, LOCAL_RANK=6 from your shell; unset it*' launch ascend2p.sh config.yaml
  [[ "$(places "${names[@]}")" = $'16 5 6 7 8 10.0.0.9 6000 9 0 2\n16 5 6 7 8 10.0.0.9 6000 9 1 2' ]] || fail "$(places "${names[@]}")"
  [[ $stderr != *'is not used'* ]] || fail "$stderr"
}

# bats test_tags=slow
@test "no variable of the caller's makes another program of a script, and none of a script's own reaches a rank" {
  local name
  for name in LIB PYTHON SHOWN WORD IGNORED CALLER; do
    export "LAUNCH_$name=$PWD/of_the_caller"
  done
  ends 0 '*ascend2p.sh: exit 0; *' launch ascend2p.sh config.yaml
  [[ "$(recorded rank_0 '[name for name, value in r["env"].items() if value.endswith("of_the_caller")]')" = '[]' ]]
}

# bats test_tags=slow
@test "a WORLD_SIZE of the user's shell that is not the number of ranks: it counts, and a note says so" {
  WORLD_SIZE=4 ends 0 '*note: the ranks get WORLD_SIZE=4 from your shell, but the job has 2; unset it*' launch ascend2p.sh config.yaml
  [[ "$(recorded rank_1 'r["env"]["WORLD_SIZE"]')" = 4 ]]
  WORLD_SIZE=2 ends 0 '*' launch ascend2p.sh config.yaml
  [[ $stderr != *note:* ]] || fail "$stderr"
}

# bats test_tags=thorough
@test "one rank with a RANK of the user's shell: no note, because no other rank has the same" {
  RANK=0 LOCAL_RANK=0 ends 0 '*' launch ascend1p.sh config.yaml
  [[ $stderr != *note:* ]] || fail "$stderr"
}

# bats test_tags=thorough
@test "ascend4p.sh says that the trainer names DEVICE_NUM, which is the tutorial's 8 there" {
  printf 'import os\nprint(os.environ["DEVICE_NUM"])\n' >train.py
  printf 'print("LOCAL_DEVICE_NUM", "DEVICE_NUMBER")\n' >other.py
  local -ra quartet=(bash "$SCRIPTS/ascend4p.sh" --no_check "${HCCN[@]}")
  ends 0 '*ascend4p.sh: note: train.py names DEVICE_NUM, which is 8 as in the tutorial of ascend4p.sh; if it counts ranks by it: export DEVICE_NUM=4*ascend4p.sh: 4 ranks on*' \
    "${quartet[@]}" --train_script train.py config.yaml
  [[ "$(<logs/latest/rank_3.log)" = 8 ]]
  DEVICE_NUM=4 ends 0 '*' "${quartet[@]}" --train_script train.py config.yaml
  [[ "$(<logs/latest/rank_3.log)" = 4 && $stderr != *note:* ]] || fail "$stderr"
  ends 0 '*' "${quartet[@]}" --train_script other.py config.yaml
  [[ $stderr != *note:* ]] || fail "$stderr"
  mkdir inner
  mv train.py inner/reads.py
  printf 'from inner import reads\n' >train.py
  ends 0 "*note: inner/reads.py names DEVICE_NUM, which is 8 as *" "${quartet[@]}" --train_script train.py config.yaml
  ends 0 '*' bash "$SCRIPTS/ascend8p.sh" --no_check "${HCCN[@]}" --train_script train.py config.yaml
  [[ $stderr != *note:* ]] || fail "$stderr"
}

# lasting: the environment of two ranks, without what differs from run to run.
lasting() {
  local rank
  for rank in rank_0 rank_1; do
    recorded "$rank" '"\n".join(f"{n}={v}" for n, v in sorted(r["env"].items()) if "PORT" not in n and "/logs/" not in v)'
  done | grep -v -E '^(LAUNCH_JOB|SHLVL|_|OLDPWD)='
}

# printed_as_launched COMMAND...: the text of its --dry_run gives ranks the same environment as its launch
printed_as_launched() {
  "$@" >/dev/null 2>&1
  lasting >launched
  rm "$STUB_OUT"/*
  "$@" --dry_run >plan.sh 2>/dev/null
  timeout 60 bash plan.sh 2>/dev/null
  diff launched <(lasting)
}

# bats test_tags=thorough
@test "the text of --dry_run gives ranks the same environment as a launch" {
  printed_as_launched launch_npu ascend2p.sh config.yaml
  grep -x LOCAL_WORLD_SIZE=2 launched
  printed_as_launched launch_npu ascend4p.sh config.yaml
  grep -x DEVICE_NUM=8 launched
  # shellcheck disable=SC2031 # each test has a shell of its own
  export RANK=3 DEVICE_NUM=5
  printed_as_launched launch_npu ascend2p.sh config.yaml
  [[ "$(grep -c -x -e RANK=3 -e DEVICE_NUM=5 launched)" = 4 ]]
}

# -----------------------------------------------------------------------------------------------------

# bats test_tags=slow
@test "what the user exported goes through untouched" {
  export OMP_NUM_THREADS=7 GLOG_v=1 MY_TOKEN="a 'b' \$(c)
d 你好"
  launch ascend2p.sh config.yaml
  [[ "$(recorded rank_1 'r["env"]["OMP_NUM_THREADS"] + r["env"]["GLOG_v"]')" = 71 ]]
  [[ "$(recorded rank_1 'r["env"]["MY_TOKEN"]')" = "$MY_TOKEN" ]]
}

# bats test_tags=slow
@test "stale variables of an earlier job are reported in one line and overridden" {
  export RANK_ID=3 MS_ROLE=MS_SCHED RANK_SIZE=16 MINDSPORE_HCCL_CONFIG_PATH=/old.json
  ends 0 '*note: RANK_ID=3, RANK_SIZE=16, MS_ROLE=MS_SCHED, MINDSPORE_HCCL_CONFIG_PATH=/old.json from your shell*' \
    launch_npu ascend2p.sh config.yaml
  [[ "$(recorded rank_1 'r["env"]["RANK_ID"] + r["env"]["RANK_SIZE"]')" = 12 ]]
  [[ "$(recorded rank_1 '"MS_ROLE" in r["env"] or "MINDSPORE_HCCL_CONFIG_PATH" in r["env"]')" = False ]]
}

# bats test_tags=thorough
@test "a rank table of the caller's shell that the launch uses is not told as unused, however it is written" {
  python "$PROJECT/hccl_tools/hccl_tools.py" --device_num '0,1' --hccn_conf hccn.conf --output table.json 2>/dev/null
  ln -s table.json link.json
  cp table.json copy.json
  for table in table.json ./table.json link.json "$PWD/../${PWD##*/}/table.json"; do
    RANK_TABLE_FILE=$table RANK_SIZE=2 ends 0 '*' launch ascend2p.sh config.yaml
    [[ $stderr != *'is not used'* && $stderr == *'rank table: '* ]] || fail "$stderr"
  done
  RANK_TABLE_FILE=table.json ends 0 '*note: RANK_TABLE_FILE=table.json from your shell is not used; the launch sets its own*' \
    launch ascend2p.sh --rank_table copy.json config.yaml
}

# bats test_tags=slow
@test "rank and device follow the rank table, not the order of the devices" {
  python - >table.json <<'PY'
import json
devices = [{"device_id": str(d), "device_ip": f"10.1.1.1{d}", "rank_id": str(7 - d)} for d in (4, 5, 6, 7)]
print(json.dumps({"version": "1.0", "server_count": "1", "status": "completed",
                  "server_list": [{"server_id": "127.0.0.1", "device": devices}]}))
PY
  launch_npu ascend4p.sh --rank_table table.json config.yaml
  [[ "$(recorded rank_0 'r["env"]["DEVICE_ID"]')" = 7 ]]
  [[ "$(recorded rank_3 'r["env"]["DEVICE_ID"]')" = 4 ]]
  [[ "$(recorded rank_0 'r["env"]["RANK_TABLE_FILE"]')" = "$WORLD/table.json" ]]
}

# bats test_tags=slow
@test "--devices chooses other devices" {
  launch_npu ascend4p.sh --devices "[0, 4)" config.yaml
  [[ "$(recorded rank_3 'r["env"]["DEVICE_ID"]')" = 3 ]]
  STUB_OUT=$BATS_TEST_TMPDIR/again
  mkdir "$STUB_OUT"
  launch_npu ascend2p.sh --devices=6,7 config.yaml
  [[ "$(recorded rank_1 'r["env"]["DEVICE_ID"]')" = 7 ]]
}

# bats test_tags=slow
@test "a rank runs where the command was typed, with nothing to read" {
  launch ascend2p.sh config.yaml
  [[ "$(recorded rank_1 'r["cwd"]')" = "$WORLD" ]]
}

# bats test_tags=slow
@test "trainer arguments arrive as they were typed, blanks, quotes, newlines and all" {
  mkdir -p "odd
\$(touch gone) 你"
  cp config.yaml "odd
\$(touch gone) 你/c.yaml"
  launch ascend2p.sh "odd
\$(touch gone) 你/c.yaml" -- -o a.b=1 --x "two  words" 'q"uo'\''te' '$(touch gone)' $'new\nline' '' '*'
  [[ "$(recorded rank_1 'r["argv"]')" = "['--config', 'odd\\n\$(touch gone) 你/c.yaml', '-o', 'a.b=1', '--x', 'two  words', 'q\"uo\\'te', '\$(touch gone)', 'new\\nline', '', '*']" ]]
  [[ ! -e gone ]]
}

# bats test_tags=slow
@test "each rank's environment is kept in a file for its owner only" {
  MY_TOKEN=secret launch ascend2p.sh config.yaml
  grep -x 'declare -x RANK_ID="1"' logs/latest/rank_1.env
  grep -q MY_TOKEN logs/latest/rank_0.env
  [[ "$(stat -c %a logs/latest/rank_1.env)" = 600 ]]
}
