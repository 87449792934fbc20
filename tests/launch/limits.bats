#!/usr/bin/env bats
# Limits of time, restarts, and jobs that want the same devices.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
}

@test "--timeout ends the job with 124" {
  export STUB_DO='0: wait; 1: children'
  ends 124 '*the job has run for 1 s, its --timeout: stopping all ranks*' launch ascend2p.sh --grace 1 --timeout 1 config.yaml
  [[ "$(launch_json 'r["outcome"]["stopped_by"]')" = timeout ]]
  nobody_left
}

@test "--stop_before asks the ranks to save before the --timeout: they have the time until then, and there is no restart" {
  export STUB_DO='0: save; 1: wait'
  ends 124 '*the time limit comes in 598 s, the --stop_before: stopping all ranks; they have 593 s to save*' \
    launch ascend2p.sh --timeout 600 --stop_before 598 --max_restarts 2 --grace 1 config.yaml
  [[ $stderr == *'asked to end: rank 1 ended without saving'* && $stderr != *'restart 1'* ]] || fail "$stderr"
  [[ "$(launch_json 'r["outcome"]["stopped_by"], r["outcome"]["asked"]["saved"], r["outcome"]["asked"]["not_saved"]')" = "('stop_before', [0], [1])" ]]
  launch_json_fits
  nobody_left
}

@test "--stop_before without a limit says that it does nothing" {
  STUB_DO='' ends 0 '*--stop_before does nothing: the job has no time limit; set one with --timeout SECONDS*' \
    launch ascend2p.sh --stop_before 60 config.yaml
}

@test "a job that goes on failing ends with the last code; its ranks learn in each attempt that SIGTERM is no request" {
  export STUB_DO='0: wait; 1: first await 0, first exit 5, exit 3'
  ends 3 '*restart 1 of 1*logs/ascend2p-*/restart_1/rank_1.log*' launch ascend2p.sh --max_restarts 1 config.yaml
  [[ "$(<logs/latest/request.json)" = '{"GracefulExit": 0}' ]]
  nobody_left
}

@test "a signal while a limit stops the job: the limit has decided the exit code" {
  # long enough for ranks to start on a busy machine
  launch_ranks '0: ignore TERM; 1: wait' ascend2p.sh --timeout 8 --grace 2 config.yaml
  eventually grep -q -e '--timeout: stopping' "$BATS_TEST_TMPDIR/stderr"
  end_by TERM 124 '*SIGTERM: the ranks are already stopping*exit 124;*'
}

@test "a job that ends before its --timeout ends as it would without" {
  export STUB_DO='1: exit 3'
  run -3 --separate-stderr launch ascend2p.sh --timeout 600 --hang_timeout 600 config.yaml
}

@test "--hang_timeout: the stacks of ranks whose logs stand still are saved, then the job ends with 124" {
  export STUB_DO='0: wait; 1: wait'
  PATH=$(without py-spy) ends 124 '*no rank has written to its log for 4 s*ranks 0,*1: in wait (*/stub_trainer.py:*' \
    launch ascend2p.sh --hang_timeout 4 config.yaml
  grep -q 'line [0-9]* in main' logs/latest/rank_1.stack
  [[ "$(launch_json 'r["outcome"]["stopped_by"]')" = hang ]]
  nobody_left
}

@test "a hang has one verdict, wherever one asks, and a rank that SIGSTOP holds is named" {
  STUB_DO='0: wait; 1: stop; 2: wait' PATH=$(without py-spy) \
    ends 124 '*' launch launch.sh -n 3 --hang_timeout 4 ./config.yaml
  local verdict='the job hung: rank 1 did not run, stopped by SIGSTOP or a debugger'
  [[ $stderr == *"rank 1: stopped by SIGSTOP or a debugger, in <lambda> ("*"$verdict"* ]] || fail "$stderr"
  [[ "$(python "$PROJECT/tools/diagnose.py" logs/latest)" = "$verdict" ]]
  [[ "$(python "$PROJECT/tools/runs.py")" = *"$verdict" ]]
  grep -q "${verdict#t}" logs/latest/report.html # its head begins with a capital letter
  [[ "$(python "$PROJECT/tools/watch.py" 2>&1)" = *"$verdict"* ]]
}

@test "where py-spy is installed, it tells where the ranks are, and nobody is aborted" {
  export STUB_DO='0: wait; 1: wait'
  mkdir bin
  cat >bin/py-spy <<'END'
#!/usr/bin/env bash
printf 'Process %s: python\nPython v3.11.7\n\nThread 1 (idle): "MainThread"\n    wait (x/threading.py:5)\n    step (t.py:7)\n' "$3"
END
  chmod +x bin/py-spy
  PATH=$PWD/bin:$PATH ends 124 '*ranks 0,*1: in wait (x/threading.py:5)*143 SIGTERM, stopped by us*' \
    launch ascend2p.sh --hang_timeout 4 config.yaml
  grep -q MainThread logs/latest/rank_0.stack
}

@test "a rank that writes keeps a job with --hang_timeout alive" {
  export STUB_DO='0: wait; 1: tick 25, exit 6'
  run -6 --separate-stderr launch ascend2p.sh --hang_timeout 2 config.yaml
}

@test "--max_restarts: all ranks start again with RESUME=1, and every attempt keeps its logs" {
  export STUB_DO='0: first wait; 1: first exit 5, print 3'
  ends 0 '*rank 1 (device 1) exited with code 5*restart 1 of 2 in 1 s*' launch ascend2p.sh --max_restarts 2 config.yaml
  grep -q 'rank 1 gives up' logs/latest/rank_1.log
  grep -qx 'line 2' logs/latest/restart_1/rank_1.log
  [[ $(tail -n 1 train.log) == '--- '*' bytes of logs/ascend2p-'*/restart_1/rank_0.log ]]
  [[ "$(recorded rank_0 'r["env"]["RESUME"]')" = 1 ]]
  [[ "$(launch_json '[a["exit"] for a in r["outcome"]["attempts"]], r["outcome"]["exit"]')" = '([5], 0)' ]]
  launch_json_fits
}

@test "--max_restarts, typed where an earlier job's LAUNCH_JOB is exported: there is a guardian after the first attempt" {
  export LAUNCH_JOB=earlier
  again() { [[ "$(recorded rank_0 'r["env"].get("RESUME")')$(recorded rank_1 'r["env"].get("RESUME")')" = 11 ]]; }
  launch_ranks '0: first exit 3, ignore TERM; 1: wait' ascend2p.sh --max_restarts 1 --grace 1 config.yaml
  eventually again
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

@test "Ctrl-C while a restart is waited for ends the job" {
  export STUB_DO='0: wait; 1: exit 5'
  launch_behind ascend2p.sh --max_restarts 9 config.yaml
  eventually grep -q 'restart 2 of 9 in 2 s' "$BATS_TEST_TMPDIR/stderr"
  end_by INT 130
}

@test "Ctrl-C in the second attempt ends the job" {
  export STUB_DO='0: wait; 1: first exit 5, wait'
  launch_behind ascend2p.sh --max_restarts 9 config.yaml
  eventually grep -q '"RESUME": "1"' "$STUB_OUT/rank_1.json"
  end_by INT 130
}

@test "a limit that is no number, and a console that is none" {
  refused 2 '*--timeout 1x is not a time: *' launch ascend2p.sh --timeout 1x config.yaml
  refused 2 '*--max_restarts -1 is not a whole number*' launch ascend2p.sh --max_restarts -1 config.yaml
  refused 2 '*--console 1*x: write ranks such as 3, 0,3 or 0-3, or all, table or none;*' launch ascend2p.sh --console 1,x config.yaml
}

# ---- devices -------------------------------------------------------------------------------------

# first_job: a job on devices 0 and 1; it runs until it is told to end
first_job() {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --device_target Ascend --no_check config.yaml
  rm "$STUB_OUT"/*
}

@test "two jobs on one device: the second is refused with the name of the first, and starts nothing; CPU ranks lock none" {
  first_job
  mkdir other && cp config.yaml hccn.conf other && cd other
  refused 78 "*device 0 in use by */logs/ascend2p-*(process $LAUNCHER of *, since *)*wait for it with --wait_for_devices*" \
    launch_npu ascend1p.sh config.yaml
  STUB_DO='' ends 0 '*' launch_npu ascend2p.sh --devices 2,3 config.yaml
  STUB_DO='' ends 0 '*' launch ascend2p.sh config.yaml # CPU ranks use no devices
  kill -KILL "$LAUNCHER"
  eventually nobody_left
  STUB_DO='' ends 0 '*' launch_npu ascend1p.sh config.yaml
}

@test "--wait_for_devices waits until the other job has ended" {
  first_job
  local -r first=$LAUNCHER
  STUB_DO='' launch_behind ascend1p.sh --device_target Ascend --no_check --wait_for_devices config.yaml
  eventually grep -q 'waiting: device 0 in use by' "$BATS_TEST_TMPDIR/stderr"
  [[ -z "$(ls "$STUB_OUT")" ]]
  kill -TERM "$first"
  ended 0
  ranks_up 0
}

@test "where there can be no locks the job runs, and it is said" {
  LAUNCH_LOCKS=/proc/none ends 0 '*other jobs cannot see which devices this one uses: /proc/none: No such file or directory*' \
    launch_npu ascend2p.sh config.yaml
}

# ---- the console ---------------------------------------------------------------------------------

@test "--console all: every line of every rank, with its number, none torn" {
  STUB_DO='0: print 2000; 1: print 2000' ends 0 '*' launch ascend2p.sh --console all config.yaml
  for rank in 0 1; do
    diff <(grep -F "[$rank] " <<<"$output") <(seq -f "[$rank] line %g" 0 1999 && echo "[$rank] no end")
  done
  [[ ${#lines[@]} -eq 4002 ]]
}

@test "--console none prints no line of a rank" {
  export STUB_DO='0: print 3'
  ends 0 '*' launch ascend2p.sh --console none config.yaml
  [[ -z $output ]] || fail "$output"
}

@test "--quiet: nothing at all when all is well, and what went wrong when not" {
  export STUB_DO='0: print 3'
  run launch ascend2p.sh --quiet config.yaml
  [[ $status -eq 0 && -z $output ]] || fail "$output"
  export STUB_DO='0: exit 4'
  run launch ascend2p.sh --quiet config.yaml
  [[ $status -eq 4 && $output == *'rank 0 (device 0) exited with code 4'*'rank 0 gives up'* ]] || fail "$output"
}

@test "colours on a terminal only, and not where NO_COLOR is set" {
  export STUB_DO='0: print 2; 1: print 2' TERM=xterm
  local -a command=(bash "$SCRIPTS/ascend2p.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py"
    --hccn_conf hccn.conf --console all config.yaml)
  run script -qefc "$(printf '%q ' "${command[@]}")" /dev/null
  [[ $output == *$'\e[36m[0]\e[0m line 1'* ]] || fail "$output"
  NO_COLOR=1 run script -qefc "$(printf '%q ' "${command[@]}")" /dev/null
  [[ $output == *'[0] line 1'* && $output != *$'\e[36m'* ]] || fail "$output"
}

@test "a job on CPU takes no devices, also where the target is an argument" {
  mkdir data
  ends 0 '*' bash "$SCRIPTS/run_pipeline.sh" --train_script "$FIXTURES/stub_trainer.py" "${HCCN[@]}" --config config.yaml data CPU
  [[ ! -e $LAUNCH_LOCKS ]]
}

# ---- restarts of a trainer that is not ours ------------------------------------------------------------------------------

readonly HEED='note: a restart sets RESUME=1, which the trainer must handle; --restart_args adds arguments to its command'

@test "restarts of a trainer that is not ours: it must heed RESUME=1; said once, and not without restarts" {
  export STUB_DO='0: first exit 3'
  noted() { [[ $stderr == *"$HEED"* && $stderr != *"$HEED"*"$HEED"* ]] || fail "$stderr"; }
  ends 0 '*' launch ascend2p.sh --max_restarts 1 config.yaml
  noted
  ends 0 '*' bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU --max_restarts 1 "$FIXTURES/stub_trainer.py" 1
  noted
  unset STUB_DO
  ends 0 '*' launch ascend2p.sh --dry_run config.yaml
  [[ $stderr != *RESUME* ]] || fail "$stderr"
  ends 0 '*' bash "$SCRIPTS/ascend2p.sh" --device_target CPU --dry_run --max_restarts 1 --train_script "$PROJECT/tools/train.py" \
    "$PROJECT/configs/mnist/lenet5_digits.yaml"
  [[ $stderr != *RESUME* ]] || fail "$stderr"
}

@test "--restart_args: words from the second attempt on, once, split as a shell does" {
  export STUB_DO='0: exit 3'
  ends 3 '*restart 2 of 2*' bash "$SCRIPTS/launch.sh" -n 2 --device_target CPU --max_restarts 2 \
    --restart_args "--resume 'a b' c\\ d \"e'f\" '\$HOME' \\
 ''" "$FIXTURES/stub_trainer.py" first
  [[ "$(recorded rank_0 'r["argv"]')" = "['first', '--resume', 'a b', 'c d', \"e'f\", '\$HOME', '']" ]] || fail "$(recorded rank_0 'r["argv"]')"
  [[ $stderr != *'must heed'* ]] || fail "$stderr"
  [[ "$(launch_json 'r["trainer"][-1], r["restart"][-2:]')" = "('first', ['\$HOME', ''])" ]]
  launch_json_fits
  STUB_DO='0: first exit 3' ends 0 '*' launch ascend2p.sh --max_restarts 1 --restart_args -x config.yaml -- -o a=1
  [[ "$(recorded rank_0 'r["argv"]')" = "['--config', 'config.yaml', '-o', 'a=1', '-x']" ]] || fail "$(recorded rank_0 'r["argv"]')"
  STUB_DO='0: wait; 1: await 0, exit 4' ends 4 '*' launch ascend2p.sh --max_restarts 0 --restart_args -x config.yaml
  [[ "$(recorded rank_1 'r["argv"]')" = "['--config', 'config.yaml']" ]] || fail "$(recorded rank_1 'r["argv"]')"
}

@test "--restart_args: a setting joins the last -o of a trainer with a config, and --dry_run shows it" {
  ends 0 '*' launch ascend2p.sh --dry_run --max_restarts 1 --restart_args '-o model.resume=True x=1 -v' config.yaml -- -o a=1 -w
  [[ $output == *$'\n# from the second attempt on it runs: '*' --config config.yaml -o a=1 model.resume=True x=1 -w -v'$'\n'* ]] || fail "$output"
  [[ $output == *' --config config.yaml -o a=1 -w >'* ]] || fail "$output"
}

@test "--restart_args that are no words, or for no restart, or no settings of our trainer, are refused in one line" {
  refused 2 "ascend2p.sh: --restart_args: a quote is not closed: -o 'x" launch ascend2p.sh --max_restarts 1 --restart_args "-o 'x" config.yaml
  refused 2 'ascend2p.sh: --restart_args: nothing follows its last backslash: *' launch ascend2p.sh --max_restarts 1 --restart_args "x\\" config.yaml
  refused 2 'ascend2p.sh: --restart_args has no word in it' launch ascend2p.sh --max_restarts 1 --restart_args ' ' config.yaml
  refused 2 'ascend2p.sh: --restart_args is for restarts; add --max_restarts N;*' launch ascend2p.sh --restart_args x config.yaml
  refused 2 'ascend2p.sh: --restart_args needs a value: *' launch ascend2p.sh --max_restarts 1 config.yaml --restart_args --
  refused 78 '*scheduler.num_epochs*' bash "$SCRIPTS/ascend2p.sh" --device_target CPU --max_restarts 1 --restart_args '-o scheduler.num_epochs=x' \
    --train_script "$PROJECT/tools/train.py" "$PROJECT/configs/mnist/lenet5_digits.yaml"
}
