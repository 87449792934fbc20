#!/usr/bin/env bats
# The page of a run that the launcher writes at the job's end: when, where, and never at the job's cost.

load ../helper

setup() {
  setup_world
}

page_is_named() {
  local -r last=${stderr##*$'\n'}
  [[ $last == "ascend2p.sh: exit $1; logs and launch.json are in logs/"*"; page: logs/"*/report.html ]] || fail "$stderr"
  grep -q '<meta name="generator" content="report.py">' "${last##*; page: }"
}

no_page() {
  ! compgen -G 'logs/*/report.html' >/dev/null || fail "there is a page: $stderr"
  ! compgen -G 'logs/*/*.part' >/dev/null || fail "a part of a page is left"
}

# python_that DOES: PYTHON of the launcher, which is the real one but for the page: there it DOES that.
python_that() {
  printf '#!/usr/bin/env bash\n[[ $* != *at_end.py* ]] || { %s; }\nexec %q "$@"\n' "$1" "$PYTHON" >python
  chmod +x python
  PYTHON=$PWD/python
}

# bats test_tags=slow
@test "a job that failed has a page, which the last line names" {
  STUB_DO='1: exit 3; 0: wait' ends 3 '*' launch ascend2p.sh --grace 1 config.yaml
  page_is_named 3
  nobody_left
}

# bats test_tags=slow
@test "a job that ended well has a page only with --report" {
  ends 0 '*exit 0; logs and launch.json are in logs/*' launch ascend2p.sh config.yaml
  no_page
  ends 0 '*' launch ascend2p.sh --report config.yaml
  page_is_named 0
}

# bats test_tags=slow
@test "the page has the command that was typed, and a restart" {
  STUB_DO='1: first exit 3' ends 0 '*' launch ascend2p.sh --report --max_restarts 1 config.yaml
  page_is_named 0
  grep -q "bash $SCRIPTS/ascend2p.sh --train_script .* --report --max_restarts 1 config.yaml" logs/latest/report.html
  [[ "$(launch_json 'r["typed"].split()[-1]')" == config.yaml ]]
}

# bats test_tags=slow
@test "--quiet: of a job that ended well not a word; of one that failed the last line has the page" {
  ends 0 '' launch ascend2p.sh --quiet --report config.yaml
  [[ -f logs/latest/report.html ]]
  STUB_DO='1: exit 3' ends 3 '*' launch ascend2p.sh --quiet config.yaml
  page_is_named 3
}

@test "--dry_run writes no page" {
  ends 0 '*' launch ascend2p.sh --dry_run --report config.yaml
  no_page
}

# bats test_tags=slow
@test "large logs: no page without --report, and no word about it" {
  launch_ranks '0: wait; 1: await go, exit 3' ascend2p.sh --grace 1 config.yaml
  truncate -s 100M logs/latest/rank_0.log
  touch "$STUB_OUT/rank_go.json"
  ended 3 '*exit 3; logs and launch.json are in logs/*'
  [[ $stderr != *page* ]] || fail "$stderr"
  no_page
}

# bats test_tags=slow
@test "SIGTERM to the launcher: a page only with --report" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --grace 1 config.yaml
  end_by TERM 143
  no_page
  rm "$STUB_OUT"/*
  launch_ranks '0: wait; 1: wait' ascend2p.sh --grace 1 --report config.yaml
  end_by TERM 143 '*exit 143; *; page: logs/*/report.html'
}

# bats test_tags=slow
@test "a rank table or launch.json that is damaged meanwhile: the exit code is the job's" {
  launch_ranks '0: wait; 1: await go, exit 3' ascend2p.sh --grace 1 config.yaml
  printf '{' >logs/latest/launch.json
  touch "$STUB_OUT/rank_go.json"
  ended 3 '*exit 3; logs and launch.json are in logs/*; page: *'
}

# bats test_tags=slow
@test "in Chinese, the page is, too" {
  STUB_DO='1: exit 3' ends 3 '*；页面：logs/*' launch ascend2p.sh --lang zh config.yaml
  grep -q '<html lang="zh">' logs/latest/report.html
}
