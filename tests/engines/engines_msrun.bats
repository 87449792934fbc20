#!/usr/bin/env bats
# Ranks that MindSpore's own launcher starts; around it what it lacks: signals, an early end, the report.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  need_mindspore
  setup_world
  HCCN=()
  PYTHONPATH=$FIXTURES/quick_msrun # the real msrun; its trainers are stubs
}

teardown() {
  lab_down
  end_left_over
}

@test "each rank has the environment of the contract, its log and its line in the report" {
  unset PYTHONPATH # with all of MindSpore
  STUB_DO='1: print 3' ends 0 '*' launch run_msrun.sh --worker_num 2 config.yaml
  engine_contract 1
}

@test "the first failure ends the others, with the grace time, its code and its log" {
  export STUB_DO='0: await 1, exit 7; 1: ignore TERM'
  ends 7 '*rank 0 (device 0) exited with code 7 after *7, failed first*137 SIGKILL, stopped by us*    rank 0 gives up*' \
    launch run_msrun.sh --worker_num 2 --grace 1 config.yaml
  nobody_left
}

for_signal() {
  launch_ranks '0: wait; 1: children' run_msrun.sh --worker_num 2 --grace 1 config.yaml
  end_by "$1"
  [[ $status -eq $((128 + $(kill -l "$1"))) ]] || fail "$status: $stderr"
  [[ $stderr == *"SIG$1: stopping all ranks"*$'\n0 '*'143 SIGTERM, stopped by us'*$'\n1 '*'143 SIGTERM, stopped by us'* ]] || fail "$stderr"
  nobody_left
}

@test "SIGTERM to the launcher ends all" { for_signal TERM; }
@test "SIGHUP to the launcher ends all" { for_signal HUP; }

@test "SIGKILL of the launcher leaves nothing" {
  launch_ranks '0: wait; 1: children' run_msrun.sh --worker_num 2 --grace 1 config.yaml
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

@test "SIGKILL of an agent ends its rank and the job, though msrun would wait for ever" {
  launch_ranks '0: children; 1: wait' run_msrun.sh --worker_num 2 --grace 1 config.yaml
  kill -KILL "$(above "$(recorded rank_0 'r["pid"]')" 1)"
  ended 137 $'*\n0 * 137 SIGKILL, failed first *\n1 * 143 SIGTERM, stopped by us *'
}

@test "SIGKILL of a rank together with all that could tell its end does not keep the job for ever" {
  launch_ranks '0: wait; 1: wait' run_msrun.sh --worker_num 2 --grace 1 config.yaml
  local -r rank=$(recorded rank_0 'r["pid"]')
  local agent
  agent=$(above "$rank" 1)
  # shellcheck disable=SC2046 # a list of numbers
  kill -KILL $(pgrep -P "$agent") "$agent" "$rank" # its watcher
  ended
  [[ $status -eq 137 && $stderr == *$'\n0 '*' 137 SIGKILL'* && $stderr != *'does not end'* ]] || fail "$status: $stderr"
  nobody_left
}

@test "SIGUSR1 reaches the ranks" {
  launch_ranks '0: usr1; 1: usr1' run_msrun.sh --worker_num 2 config.yaml
  end_by USR1 0
}

@test "several hosts need an address that all of them reach" {
  ends 2 '*--master_addr 127.0.0.1 can be reached only from this host*' \
    launch run_msrun.sh --worker_num 4 --local_worker_num 2 --node_rank 1 --master_addr 127.0.0.1 config.yaml
}

@test "wrong numbers are named" {
  while IFS='|' read -r arguments message; do
    # shellcheck disable=SC2086 # several arguments
    refused_later 2 "run_msrun.sh: $message" launch run_msrun.sh $arguments config.yaml
  done <<'LIST'
--worker_num 0|--worker_num 0 is not a number from 1 to 65536
--worker_num 4 --local_worker_num 8|--local_worker_num 8: the job has --worker_num 4 ranks in all
--worker_num 8 --local_worker_num 3|--worker_num 8 is not a multiple of --local_worker_num 3: msrun needs the same number of ranks on each host
--worker_num 4 --local_worker_num 2|--node_rank is missing: 2 hosts have 2 of 4 ranks each; count from 0
--worker_num 4 --local_worker_num 2 --node_rank 2|--node_rank 2: 4 ranks with 2 per host use hosts 0 to 1
LIST
  refused_later 78 'run_msrun.sh: --master_addr no-such-host.invalid has no address (*' \
    launch run_msrun.sh --worker_num 2 --master_addr no-such-host.invalid config.yaml
  all_refused
}

@test "--hang_timeout: the stacks of the ranks are saved and the launcher says where each rank is" {
  STUB_DO='0: wait; 1: wait' ends 124 "*run_msrun.sh: ranks 0,*1: in wait ($FIXTURES/stub_trainer.py:*" \
    launch run_msrun.sh --worker_num 2 --hang_timeout 5 config.yaml
  grep -q stub_trainer.py logs/latest/rank_1.stack
  nobody_left
}

# msrun_on HOST WORD...: two hosts of one rank each
msrun_on() {
  local -r host=$1
  shift
  timeout -k 5 300 "$LAB_SH" run "$host" bash "$SCRIPTS/run_msrun.sh" --device_target CPU --worker_num 2 --local_worker_num 1 \
    --master_addr node0 --node_rank "$host" --log_dir "logs$host" --train_script "$FIXTURES/one_weight.py" "$@" \
    "$PROJECT/configs/mnist/lenet5_digits.yaml"
}

# bats test_tags=trains
@test "lab: real MindSpore, typed on each of two hosts: one cluster, which trains, and a report on each" {
  train_for_real
  lab_up 2
  msrun_on 1 >stdout1 2>stderr1 3>&- &
  ends 0 '*' msrun_on 0
  wait "$!" || fail "$(<stderr1)"
  fitted_alike 2 logs0/latest/rank_0.log logs1/latest/rank_1.log
  [[ $stderr == *$'\n0     0       0 '* && "$(<stderr1)" == *$'\n1     0       0 '* ]] || fail "$stderr" "$(<stderr1)"
}

# ---- msrun's words -------------------------------------------------------------------------------

@test "--sim_level compiles one rank of thousands: one process, no scheduler, no device" {
  unset MS_SIMULATION_LEVEL
  STUB_DO='' ends 0 '*' launch_npu run_msrun.sh --device_target Ascend --worker_num 4096 --local_worker_num 8 \
    --sim_level 1 --sim_rank_id 777 config.yaml
  [[ "$(ls "$STUB_OUT")" = rank_777.json && ! -e logs/latest/scheduler.log ]] || fail "$(ls "$STUB_OUT" logs/latest)"
  [[ "$(recorded rank_777 '[r["env"].get(n) for n in ("MS_SIMULATION_LEVEL", "RANK_ID", "RANK_SIZE", "MS_ROLE", "MS_SCHED_HOST")]')" = "['1', '777', '4096', None, None]" ]]
}

@test "--worker_log_name: the logs have links by msrun's names" {
  STUB_DO='1: print 3' ends 0 '*' launch run_msrun.sh --worker_num 2 --worker_log_name 'w_{ip}_{hostname}' config.yaml
  diff "logs/latest/w_127.0.0.1_$(hostname)_1.log" logs/latest/rank_1.log
  ends 2 '*--worker_log_name ../w: is not the name of a file*' launch run_msrun.sh --worker_log_name ../w config.yaml
}
