#!/usr/bin/env bats
# How the scripts are called: help, dry run, links, other folders, other shells; what a run leaves.

load ../helper

setup() {
  setup_world
}

# bats test_tags=thorough
@test "--help of every script: its own usage, then every option there is" {
  for script in ascend1p ascend2p ascend4p ascend8p; do
    ends 0 '' bash "$SCRIPTS/$script.sh" --help
    [[ $output == *"Usage: bash $SCRIPTS/$script.sh [options] CONFIG [-- trainer arguments]"*Example:*"$script.sh --device_target CPU"* ]]
    for option in device_target devices rank_table train_script log_dir dry_run no_check grace help; do
      [[ $output == *"  --$option"* ]] || fail "$script.sh --help does not name --$option"
    done
  done
}

# bats test_tags=slow
@test "hyphens and underscores in option names are the same" {
  bash "$SCRIPTS/ascend2p.sh" --device-target=cpu --train-script "$FIXTURES/stub_trainer.py" --hccn-conf hccn.conf config.yaml
  ranks_up 0 1
}

# starts COMMAND...: with options for the stub trainer it starts two ranks
starts() {
  "$@" --no_check --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf config.yaml
  ranks_up 0 1
}

@test "called through a link, from another folder" {
  ln -s "$SCRIPTS/ascend2p.sh" "$BATS_TEST_TMPDIR/train it.sh"
  starts bash "$BATS_TEST_TMPDIR/train it.sh"
}

@test "called from its own folder, by its bare name" {
  cd "$SCRIPTS"
  run -0 bash ascend2p.sh --help
}

@test "called with sh" { starts sh "$SCRIPTS/ascend2p.sh"; }
@test "called with bash in its POSIX mode" { POSIXLY_CORRECT=1 starts bash "$SCRIPTS/ascend2p.sh"; }

@test "tools/train.py of the current folder comes before the project's" {
  mkdir tools
  cp "$FIXTURES/stub_trainer.py" tools/train.py
  bash "$SCRIPTS/ascend2p.sh" --no_check --hccn_conf hccn.conf config.yaml
  ranks_up 0 1
}

@test "another trainer is told of the target only if its config names one" {
  echo 'system: {distribute: True, device_target: Ascend}' >config.yaml
  launch ascend2p.sh config.yaml -- -o a=1 --flag
  [[ "$(recorded rank_0 'r["argv"][2:]')" = "['-o', 'a=1', 'system.device_target=CPU', '--flag']" ]]
}

@test "--dry_run prints the plan, starts nothing and writes nothing" {
  ends 0 '*' launch ascend4p.sh --dry_run config.yaml
  [[ "$(grep -c 'env RANK_ID=' <<<"$output")" -eq 4 ]]
  [[ ! -e logs ]]
  [[ -z "$(ls "$STUB_OUT")" ]]
}

# bats test_tags=slow
@test "what --dry_run prints can be pasted into a shell and starts the same ranks" {
  launch_npu ascend2p.sh --dry_run config.yaml >plan.sh 2>/dev/null
  RANK_ID=9 MS_ROLE=MS_SCHED bash plan.sh
  ranks_up 0 1
  [[ "$(recorded rank_1 'r["env"]["RANK_ID"], r["env"]["DEVICE_ID"], r["env"]["RANK_SIZE"], "MS_ROLE" in r["env"]')" = "('1', '1', '2', False)" ]]
  python "$PROJECT/hccl_tools/validate_hccl.py" "$(recorded rank_1 'r["env"]["RANK_TABLE_FILE"]')"
}

# bats test_tags=slow
@test "the rank table that a launch builds for its NPUs is good, and the ranks have it" {
  launch_npu ascend4p.sh config.yaml
  local -r table=$(recorded rank_3 'r["env"]["RANK_TABLE_FILE"]')
  [[ $table == "$(readlink -f logs/latest)"/* ]] || fail "$table"
  for generation in any 910A A2; do
    ends 0 '' python "$PROJECT/hccl_tools/validate_hccl.py" --generation "$generation" "$table"
  done
  [[ $(python -c 'import json, sys; print([d["device_id"] for d in json.load(open(sys.argv[1]))["server_list"][0]["device"]])' "$table") == "['4', '5', '6', '7']" ]] || fail "$(<"$table")"
}

# bats test_tags=slow
@test "a run leaves its logs, its plan and its outcome; an earlier run stays as it is" {
  launch ascend2p.sh config.yaml
  first=$(readlink logs/latest)
  STUB_DO='1: exit 4' run launch ascend2p.sh config.yaml
  [[ "$status" -eq 4 ]]
  [[ "$(readlink logs/latest)" != "$first" ]]
  [[ $first =~ ^ascend2p-[0-9]{8}T[0-9]{6}Z-[0-9]+$ ]]
  for file in launch.json rank_0.log rank_0.env rank_1.log rank_1.env scheduler.log hccl_2p_01_127.0.0.1.json; do
    [[ -e "logs/$first/$file" ]] || fail "no $file"
  done
  [[ "$(launch_json 'r["outcome"]["exit"], r["ranks"][1], r["device_target"]')" = "(4, {'rank': 1, 'device': 1, 'log': 'rank_1.log'}, 'CPU')" ]]
}

# bats test_tags=slow
@test "launch.json satisfies its schema, before and after the run" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh config.yaml
  cp logs/latest/launch.json before.json
  end_by TERM
  PYTHONPATH=$PROJECT python - before.json logs/latest/launch.json <<'PY'
import json, sys
from hccl_tools.check import schema_check, schema_words
for path in sys.argv[1:]:
    assert not schema_words.problems(json.load(open(path)), schema_check.load_schema("launch")), path
PY
}

# bats test_tags=thorough
@test "train.log leads to rank 0's log of the latest run" {
  export STUB_DO='0: print 3'
  launch ascend2p.sh config.yaml
  launch ascend2p.sh config.yaml
  [[ -f train.log && ! -L train.log ]]
  [[ "$(head -n -1 train.log)" = "$(<logs/latest/rank_0.log)" ]]
  grep -q 'line 1' train.log
}

# bats test_tags=slow
@test "a train.log and a logs/latest of the user's stay as they are, and that is said" {
  echo mine >train.log
  mkdir -p logs/latest
  ends 0 '*' launch ascend2p.sh config.yaml
  [[ "$(cat train.log)" = mine ]]
  [[ -d logs/latest ]] && [[ ! -L logs/latest ]]
  [[ $stderr == *'logs/latest does not belong to a run; it is not changed'*'train.log does not belong to a run'* ]] || fail "$stderr"
}

@test "--log_dir: the runs go there, with blanks in its name too" {
  launch ascend2p.sh --log_dir "$WORLD/my logs/deep" config.yaml
  [[ -e "my logs/deep/latest/rank_1.log" ]]
}

# bats test_tags=slow
@test "two launches at once do not meet" {
  launch_behind ascend2p.sh config.yaml
  launch ascend2p.sh config.yaml
  ended 0
  [[ "$(find logs -maxdepth 1 -type d -name 'ascend2p-*' | wc -l)" -eq 2 ]]
}

# bats test_tags=slow
@test "a copied script says that it is to be called by path or link" {
  mkdir -p copies/lib
  cp "$SCRIPTS"/*.sh copies
  for script in copies/*.sh; do
    [[ $script != *completion* ]] || continue
    refused 78 "${script##*/}: */copies/lib/start.sh*is missing: do not copy this script; call it by its path, or through a link" bash "$script" config.yaml
  done
  ln -s "$SCRIPTS/ascend2p.sh" link.sh
  ends 2 'link.sh: PROGRAM or CONFIG is missing; *' bash link.sh
}

# bats test_tags=slow
@test "options of MSLAUNCH_OPTIONS: in a note, in the plan and in launch.json; the typed ones win" {
  export MSLAUNCH_OPTIONS="--grace 3 --log_dir 'my logs' --hostfile hosts"
  ends 0 "*ascend2p.sh: from MSLAUNCH_OPTIONS: --grace 3 --log_dir my*logs; --no_defaults ignores them*" launch ascend2p.sh config.yaml
  [[ "$(python -c 'import json; print(json.load(open("my logs/latest/launch.json"))["defaults"])')" = '--grace 3 --log_dir my\ logs' ]]
  ends 0 '*' launch ascend2p.sh --log_dir=. --grace 5s --dry_run config.yaml
  [[ $output != *MSLAUNCH* && $stderr != *MSLAUNCH* ]]
  ends 0 '*' launch ascend2p.sh --log_dir . --dry_run config.yaml
  [[ $output == *$'\n# options from MSLAUNCH_OPTIONS: --grace 3\n'* ]]
  ends 0 '*' launch ascend2p.sh --no-defaults config.yaml
  [[ -d logs && $stderr != *MSLAUNCH* ]]
  MSLAUNCH_OPTIONS='--devices 0-3' ends 2 '*names 4*ascend2p.sh: from MSLAUNCH_OPTIONS: --devices 0-3; --no_defaults ignores them*' \
    launch ascend2p.sh config.yaml
}
