#!/usr/bin/env bats
# Ranks that a real Slurm of two nodes on this machine starts: srun under salloc and sbatch.

# bats file_tags=thorough
load ../helper
load ../hosts

setup_file() {
  slurm_up
}

teardown_file() {
  slurm_down
}

setup() {
  [[ -z $WHY_NOT ]] || skip "$WHY_NOT"
  setup_world
  HCCN=()
}

# allocated ARGUMENT...: run_slurm.sh on two nodes of two ranks.
# shellcheck disable=SC2120 # one test gives an option
allocated() {
  salloc --quiet -N 2 --ntasks-per-node=2 bash "$SCRIPTS/run_slurm.sh" --device_target CPU \
    --train_script "$FIXTURES/stub_trainer.py" --grace 2 "$@" config.yaml
}

# batch ARGUMENT...: the same by sbatch; its output in `output`.
batch() {
  sbatch --quiet --output=sbatch.out -N 2 --ntasks-per-node=2 "$@" "$SCRIPTS/run_slurm.sh" --device_target CPU \
    --train_script "$FIXTURES/stub_trainer.py" --grace "${grace-2}" config.yaml
}

# batch_runs WHAT [ARGUMENT...]: a batch job whose four ranks do WHAT, and run.
batch_runs() {
  export STUB_DO=$1
  batch "${@:2}"
  eventually ranks_up 0 1 2 3
}

# reported PATTERN: scancel has ended the launch, whose report fits; nothing is left.
reported() {
  eventually grep -q 'exit 143' sbatch.out || fail "$(<sbatch.out)"
  # shellcheck disable=SC2053 # a pattern is meant
  [[ "$(<sbatch.out)" == $1 ]] || fail "$(<sbatch.out)"
  eventually nobody_left
}

@test "words and folders of each rank: those of its own number and device" {
  printf 'import os, sys\nopen("mine", "w").close()\nprint(*sys.argv[1:], sorted(os.listdir()))\n' >show.py
  ends 0 '*' salloc --quiet -N 2 --ntasks-per-node=2 bash "$SCRIPTS/run_slurm.sh" --device_target CPU --per_rank_words --rank_files show.py \
    show.py '{rank}' '{local_rank}' '{device}' '{world_size}'
  for rank in 0 1 2 3; do
    [[ "$(cat "logs/latest/rank_$rank.log")" = "$rank $((rank % 2)) $((rank % 2)) 4 ['mine', 'show.py']" ]] || fail "$(cat logs/latest/rank_?.log)"
  done
  [[ ! -e mine && -e logs/latest/folders/rank_3/mine ]]
}

@test "salloc: each rank has the environment of the contract, its log and its line in the report" {
  export STUB_DO='0: await scheduler; 1: await scheduler; 2: await scheduler; 3: await scheduler'
  MY_OWN='a b' ends 0 '*' allocated
  for rank in 0 1 2 3; do
    [[ "$(recorded "rank_$rank" 'r["env"]["RANK_ID"], r["env"]["DEVICE_ID"], r["env"]["RANK_SIZE"], r["env"]["MS_ROLE"], r["env"]["SLURMD_NODENAME"]')" = "('$rank', '$((rank % 2))', '4', 'MS_WORKER', 'n$((rank / 2))')" ]] || fail "rank $rank"
    [[ -e logs/latest/rank_$rank.log ]]
  done
  [[ "$(places RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE SERVER_ID DEVICE_NUM)" = $'0 0 4 2 0 2\n1 1 4 2 0 2\n2 0 4 2 1 2\n3 1 4 2 1 2' ]]
  [[ "$(recorded rank_3 'r["env"]["MY_OWN"], r["cwd"], "LAUNCH_SECRET" in r["env"]')" = "('a b', \"$WORLD\", False)" ]]
  [[ "$(recorded scheduler 'r["SLURMD_NODENAME"]')" = n0 ]]
  nobody_left
}

@test "--bind_core: each rank has its core, which it finds on its node" {
  (($(nproc) > 1)) || skip "needs 2 processors"
  STUB_DO='' ends 0 '*' allocated --bind_core
  local cores
  cores=$(for rank in 0 1 2 3; do recorded "rank_$rank" 'r["env"]["MSRUN_CPU_LIST"]'; done)
  [[ "$(sort -u <<<"$cores" | wc -l) $(head -n 2 <<<"$cores")" = "2 $(tail -n 2 <<<"$cores")" ]] || fail "$cores"
  [[ "$(<logs/latest/rank_3.log)" == "note: this rank is bound to cores "* ]]
}

@test "--straggler and --metrics: the ranks of both nodes, by their logs" {
  export STUB_DO='0: steps 400 20; 1: steps 400 20; 2: steps 400 20; 3: steps 200 40'
  ends 0 '*rank 3 (device 1 of n1) takes 2.0 times *slow: rank 3 (device 1 of n1) took 2.0 times *' \
    allocated --straggler 1.5 --metrics m.prom
  grep -q '^mindspore_launch_ranks_expected{.*} 4$' m.prom && grep -q '^mindspore_launch_exit_code{.*} 0$' m.prom || fail "$(<m.prom)"
  grep -q '^mindspore_launch_rank_step{.*rank="3",host="n1".*} 200$' m.prom || fail "$(<m.prom)"
}

@test "sbatch: the exit code of the job is the failed rank's, and its file has the report" {
  export STUB_DO='0: wait; 1: wait; 2: await 0 1 3, exit 7; 3: ignore TERM'
  run batch --wait
  [[ $status -eq 7 ]] || fail "$status $(<sbatch.out)"
  report=$(<sbatch.out)
  [[ $report == *"run_slurm.sh: rank 2 (device 0 of n1) exited with code 7"*"137 SIGKILL, stopped by us"*"    rank 2 gives up"* ]] || fail "$report"
  nobody_left
}

@test "scancel ends everything, and is said to be the reason" {
  batch_runs '0: wait; 1: wait; 2: wait; 3: children' --comment=test
  scancel "$(squeue -h -o %i)"
  reported '*SIGTERM: stopping all ranks*'
}

@test "scancel gives the ranks the grace time, and the report is written" {
  batch_runs '0: wait; 1: wait; 2: wait; 3: ignore TERM' --comment=test
  scancel "$(squeue -h -o %i)"
  reported $'*143 SIGTERM, stopped by us*\n3 * 137 SIGKILL, stopped by us   [2-9].*'
  [[ "$(<sbatch.out)" != *'end not reported'* ]] || fail "$(<sbatch.out)"
}

@test "scancel where Slurm's own time is shorter than the grace time: it is said, and the report is written" {
  grace=60 batch_runs '0: wait; 1: wait; 2: wait; 3: ignore TERM' --comment=test
  scancel "$(squeue -h -o %i)"
  reported $'*Slurm kills the remaining processes after 10 s (KillWait)*143 SIGTERM, stopped by us*\n3 * 137 SIGKILL, stopped by us *'
}

@test "scancel when the ranks have been told to stop already: Slurm's time counts, and the report is written" {
  grace=60 batch_runs '0: wait; 1: wait; 2: wait; 3: ignore TERM'
  kill -TERM "$(launch_json 'r["run_dir"].rpartition("-")[2]')"
  for rank in 0 1 2; do
    eventually gone "$(recorded "rank_$rank" 'r["pid"]')"
  done
  scancel --signal=TERM "$(squeue -h -o %i)" # the steps; the script's own signal may come at any time
  reported $'*Slurm kills the remaining processes after 10 s (KillWait)*\n3 * 137 SIGKILL, stopped by us *'
}

@test "a rank that ends long before the others is no reason to end them, whatever the site's WaitTime" {
  STUB_DO='1: tick 40; 2: tick 40; 3: tick 40' ends 0 '*' allocated
}

@test "the user's own settings for what srun reads and writes do not come between the ranks and the launcher" {
  export STUB_DO='0: wait; 1: await 0 2 3, exit 3; 2: wait; 3: wait'
  export SLURM_LABELIO=1 SLURM_STDINMODE=none SLURM_STDOUTMODE=none SLURM_STDERRMODE=none
  ends 3 $'*\n0 * 143 SIGTERM, stopped by us *\n1 * 3, failed first *' allocated
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait' STUB_SCHEDULER_EXIT='no number'
  ends 1 '*' allocated
  grep -q "ValueError.*'no number'" logs/latest/scheduler.log
}

@test "scancel --batch --signal=TERM gives the ranks the grace time" {
  batch_runs '0: wait; 1: wait; 2: wait; 3: ignore TERM' --comment=test
  scancel --batch --signal=TERM "$(squeue -h -o %i)"
  reported '*SIGTERM: stopping all ranks*143 SIGTERM, stopped by us*137 SIGKILL, stopped by us*'
}

@test "SIGTERM to the launcher ends the ranks of all nodes" {
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: children'
  allocated --grace 3 2>"$BATS_TEST_TMPDIR/stderr" 3>&- &
  eventually ranks_up 0 1 2 3
  kill -TERM "$(launch_json 'r["run_dir"].rpartition("-")[2]')"
  wait "$!" && fail 'exit 0'
  grep -q 'SIGTERM: stopping all ranks' "$BATS_TEST_TMPDIR/stderr"
  grep -q '143 SIGTERM, stopped by us' "$BATS_TEST_TMPDIR/stderr"
  eventually nobody_left
}

@test "--max_restarts starts the ranks of all nodes again, --restart_args with them" {
  STUB_DO='0: first wait; 1: first wait; 3: first wait; 2: first await 0 1 3, first exit 7' ends 0 '*restart 1 of 1*' allocated --max_restarts 1 \
    --restart_args "-o 'a b'"
  for rank in 0 3; do
    [[ "$(recorded "rank_$rank" 'r["argv"]')" = "['--config', 'config.yaml', '-o', 'a b']" ]] || fail "rank $rank"
  done
  nobody_left
}

@test "SIGUSR1 reaches the ranks once" {
  export STUB_DO='0: usr1; 1: usr1; 2: usr1; 3: usr1'
  allocated --grace 3 3>&- &
  eventually ranks_up 0 1 2 3
  kill -USR1 "$(launch_json 'r["run_dir"].rpartition("-")[2]')"
  wait "$!"
  grep -qx 'got SIGUSR1' logs/latest/rank_3.log
}

@test "SIGUSR1 that Slurm sends to the steps is a request, which the launcher learns from the agents" {
  batch_runs '0: usr1; 1: usr1; 2: usr1; 3: usr1'
  scancel --signal=USR1 "$(squeue -h -o %i)"
  eventually grep -q 'exit 0' sbatch.out || fail "$(<sbatch.out)"
  [[ "$(grep -c 'SIGUSR1: asking all ranks to save and exit' sbatch.out)" = 1 ]] || fail "$(<sbatch.out)"
  [[ "$(<logs/latest/request.json)" = '{"GracefulExit": 1}' ]]
  grep -qx 'got SIGUSR1' logs/latest/rank_3.log
}

@test "--stop_before asks the ranks before the time limit of the job" {
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: wait'
  sbatch --quiet --output=sbatch.out --time=20 -N 2 --ntasks-per-node=2 "$SCRIPTS/run_slurm.sh" --device_target CPU \
    --train_script "$FIXTURES/stub_trainer.py" --stop_before 1195 config.yaml
  eventually grep -q 'exit 124' sbatch.out || fail "$(<sbatch.out)"
  [[ "$(<sbatch.out)" == *'the time limit comes in 1195 s, the --stop_before: stopping all ranks; they have 1190 s to save'* ]] || fail "$(<sbatch.out)"
  [[ "$(<logs/latest/request.json)" = '{"GracefulExit": 1}' ]]
  eventually nobody_left
}

@test "--hang_timeout: the ranks' agents save their stacks and the launcher says where each rank is" {
  STUB_DO='0: wait; 1: wait; 2: wait; 3: wait' ends 124 '*' allocated --hang_timeout 3
  [[ $stderr == *"run_slurm.sh: ranks 0-3: in wait ($FIXTURES/stub_trainer.py:"*")"$'\n'* ]] || fail "$stderr"
  grep -q stub_trainer.py logs/latest/rank_3.stack
  nobody_left
}

@test "SIGKILL of the launcher leaves nothing on any node" {
  export STUB_DO='0: wait; 1: wait; 2: wait; 3: children'
  allocated --grace 3 3>&- &
  eventually ranks_up 0 1 2 3
  kill -KILL "$(launch_json 'r["run_dir"].rpartition("-")[2]')"
  wait "$!" || true
  eventually nobody_left
}

@test "the scheduler is on the first node also when the script is on neither" {
  ends 0 '*' allocated --dry_run
  [[ $output == *"srun --nodes=1 --ntasks=1 --nodelist=n0 "*scheduler.py* ]] || fail "$output"
}

@test "Slurm itself: where another takes a port of it meanwhile, it starts with others" {
  mkdir bin
  printf '%s\n' '#!/bin/bash' 'PATH=${PATH#*:}' \
    '[[ -e tried ]] || { touch tried && echo "Address already in use" >>"${2%/*}/slurmctld.log" && exit 0; }' \
    'exec slurmctld "$@"' >bin/slurmctld
  chmod +x bin/slurmctld
  ends 0 '' env PATH="$PWD/bin:$PATH:/usr/sbin:/sbin" bash "$FIXTURES/slurm.sh" up "$BATS_TEST_TMPDIR/other"
  [[ -e tried && "$(SLURM_CONF=$BATS_TEST_TMPDIR/other/slurm.conf sinfo -h -o %T)" == idle ]]
  bash "$FIXTURES/slurm.sh" down "$BATS_TEST_TMPDIR/other"
}

@test "outside of an allocation, and with unequal nodes, the reason is said" {
  refused 78 'run_slurm.sh: not inside a Slurm job: SLURM_JOB_ID is not set; submit the script, such as: sbatch -N 2 *' \
    launch run_slurm.sh config.yaml
  run --separate-stderr salloc --quiet -N 2 -n 3 bash "$SCRIPTS/run_slurm.sh" --device_target CPU \
    --train_script "$FIXTURES/stub_trainer.py" config.yaml
  [[ $status -ne 0 ]]
  [[ $stderr == "run_slurm.sh: the nodes have different numbers of tasks: "*"; ask for them with sbatch --ntasks-per-node"* ]] || fail "$stderr"
}

# bats test_tags=trains
@test "real MindSpore: two nodes of one rank each train as one cluster" {
  train_for_real
  run --separate-stderr timeout -k 5 300 salloc --quiet -N 2 --ntasks-per-node=1 bash "$SCRIPTS/run_slurm.sh" \
    --device_target CPU --train_script "$FIXTURES/one_weight.py" "$PROJECT/configs/mnist/lenet5_digits.yaml"
  [[ $status -eq 0 && $output == *'loss is '* ]] || fail "$stderr" "$output"
  fitted_alike 2 logs/latest/rank_0.log logs/latest/rank_1.log
  [[ $stderr == *$'\n1     0       n1 '* ]] || fail "$stderr"
  nobody_left
}

@test "ranks that srun alone starts take the devices of their places, and our trainer names run_slurm.sh" {
  local -r place='from tools.trainer import place; print(place.device(), place.ranks_of({"system": {"distribute": True}}))'
  ends 0 '*' env -C "$PROJECT" salloc --quiet -N 2 --ntasks-per-node=2 srun "$PYTHON" -c "$place"
  [[ "$(sort <<<"$output")" == $'0 4\n0 4\n1 4\n1 4' ]] || fail "$output"
  ends 2 '*train.py: ranks that srun alone starts cannot form a cluster on CPU; use bash */scripts/run_slurm.sh instead*' \
    salloc --quiet -N 2 --ntasks-per-node=2 srun "$PYTHON" "$PROJECT/tools/train.py" \
    --config "$PROJECT/configs/mnist/lenet5_digits.yaml" -o system.device_target=CPU
  [[ $stderr != *Traceback* ]] || fail "$stderr"
}

@test "on NPUs each rank has a folder of its own for CANN's logs; those of a failed job stay" {
  STUB_DO='0: plog 1; 3: plog 2, await 0 1 2, exit 3' ends 3 '*' allocated --device_target Ascend --no_check
  [[ "$(places ASCEND_PROCESS_LOG_PATH LAUNCH_PLOGS | sed 's|.*/logs/[^/]*/||' | xargs)" = 'plog/rank_0 - plog/rank_1 - plog/rank_2 - plog/rank_3 -' ]] || fail "$(places ASCEND_PROCESS_LOG_PATH)"
  [[ "$(find logs/latest/plog -name '*.log' | wc -l)" = 2 ]]
  STUB_DO='0: plog 1' ends 0 '*' allocated --device_target Ascend --no_check
  [[ ! -e logs/latest/plog ]]
}
