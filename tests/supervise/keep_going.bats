#!/usr/bin/env bats
# --keep_going: a rank that fails does not stop the others, whatever starts the ranks.

# bats file_tags=thorough
load ../helper
load ../lab/lab

setup() {
  setup_world
}

teardown() {
  lab_down
  [[ -z ${SLURM-} ]] || bash "$FIXTURES/slurm.sh" down "$SLURM"
  end_left_over
}

# ends_rank SIGNAL RANK: a signal ends it.
ends_rank() {
  kill -s "$1" "$(recorded "rank_$2" 'r["pid"]')"
}

# says PATTERN...: the launcher has printed it, or does so soon.
says() {
  eventually grep -q -e "$1" "$BATS_TEST_TMPDIR/stderr" || fail "$(<"$BATS_TEST_TMPDIR/stderr")"
}

# goes_on SCRIPT ARGUMENT...: two of three ranks work on after the third has failed.
goes_on() {
  launch_ranks '0: usr1; 1: wait; 2: usr1' "$1" --keep_going "${@:2}" config.yaml
  ends_rank KILL 1
  says 'rank 1 (device [15].*) was ended by SIGKILL after .* s; the other 2 ranks go on$'
  end_by USR1 137 $'*\n1 * 137 SIGKILL, failed first *: 1 of 3 ranks failed: rank 1 (--keep_going)*'
  [[ $(grep -lx 'got SIGUSR1' logs/latest/rank_?.log | xargs) == logs/latest/rank_0.log\ logs/latest/rank_2.log ]] || fail "$stderr"
  [[ "$(launch_json '[r["outcome"]["members"][str(n)]["status"] for n in range(3)], r["outcome"]["first_failure"]')" = "([0, 137, 0], '1')" ]]
}

@test "the launcher itself" { goes_on launch.sh -n 3; }

@test "Open MPI" {
  need mpirun
  HCCN=()
  goes_on run_mpirun.sh -n 3
}

@test "Open MPI: the tutorials' -mca orte_abort_on_non_zero_status 0 means the same" {
  need mpirun
  HCCN=()
  # longer than an agent, whose rank has failed, would wait for an order
  STUB_DO='0: await 1, tick 65; 1: exit 7' ends 7 $'*\n0     0       0  *\n*1 of 2 ranks failed: rank 1 (--keep_going)*' \
    launch run_mpirun.sh -n 2 --grace 0 -mca orte_abort_on_non_zero_status 0 config.yaml
  STUB_DO='0: wait; 1: await 0, exit 7' ends 7 '*; stopping the other rank*' \
    launch run_mpirun.sh -n 2 -mca orte_abort_on_non_zero_status 1 config.yaml
}

@test "MindSpore's msrun" {
  need_mindspore
  HCCN=()
  PYTHONPATH=$FIXTURES/quick_msrun
  goes_on run_msrun.sh --worker_num 3
  # longer than msrun takes to see that one of its processes has failed
  STUB_DO='0: await 1, tick 25; 1: exit 7' ends 7 $'*\n0     0       0  *\n*1 of 2 ranks failed: rank 1 (--keep_going)*' \
    launch run_msrun.sh --worker_num 2 --keep_going config.yaml
}

@test "Slurm" {
  SLURM=$BATS_TEST_TMPDIR/slurm
  WHY_NOT=$(env -u TEST_MARK bash "$FIXTURES/slurm.sh" up "$SLURM" 2>&1) || skip "${WHY_NOT:-no Slurm here}"
  export SLURM_CONF=$SLURM/slurm.conf STUB_DO='0: await 1 2, tick 5; 1: exit 7; 2: await 1, tick 5'
  ends 7 $'*; the other * go on\n*: 1 of 4 ranks failed: rank 1 (--keep_going)*' salloc --quiet -N 2 --ntasks-per-node=2 \
    bash "$SCRIPTS/run_slurm.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" --keep_going config.yaml
  [[ "$(tail -n 1 logs/latest/rank_0.log)$(tail -n 1 logs/latest/rank_2.log)" == 'tick 4tick 4' ]] || fail "$(cat logs/latest/rank_?.log)"
}

@test "each rank that fails is named at once and in the report; the exit code is that of the first" {
  launch_ranks '0: usr1; 1: wait; 2: wait; 3: wait' ascend4p.sh --keep_going config.yaml
  ends_rank SEGV 2
  says 'rank 2 (device 6) was ended by SIGSEGV .*; the other 3 ranks go on$'
  ends_rank KILL 1
  says 'rank 1 (device 5) was ended by SIGKILL .*; the other 2 ranks go on$'
  ends_rank TERM 3
  says 'rank 3 (device 7) was ended by SIGTERM .*; the other rank goes on$'
  end_by USR1 139 $'*\n0 * 0  *\n1 * 137 SIGKILL, failed  *\n2 * 139 SIGSEGV, failed first *\n3 * 143 SIGTERM, failed  *: 3 of 4 ranks failed: ranks 1-3 (--keep_going)*'
  [[ "$(launch_json 'r["outcome"]["exit"], r["outcome"]["first_failure"], r["outcome"]["also_failed"]')" = "(139, '2', ['1', '3'])" ]]
  launch_json_fits
}

@test "signals that end several ranks at once: all of them have failed" {
  launch_ranks '0: usr1; 1: wait; 2: wait; 3: wait' ascend4p.sh --keep_going config.yaml
  # shellcheck disable=SC2046 # three numbers
  kill $(for rank in 1 2 3; do recorded "rank_$rank" 'r["pid"]'; done)
  says '; the other rank goes on$'
  end_by USR1 143 '*: 3 of 4 ranks failed: ranks 1-3 (--keep_going)*'
}

@test "one rank alone: nothing goes on, and nothing is said of others" {
  HCCN=()
  stubbed run_cpu.sh --keep_going config.yaml
  STUB_DO='0: exit 3' ends 3 '*rank 0 (device 0) exited with code 3 after ?.? s'$'\n*' "${STUBBED[@]}"
  [[ $stderr != *'ranks failed'* ]] || fail "$stderr"
}

@test "run_cluster.sh: the launcher with the scheduler waits for the ranks of other hosts, also when all of its own have failed" {
  HCCN=()
  lab_up 2
  mkdir data
  printf '{"version": "1.0", "server_count": "2", "status": "completed", "server_list": [%s]}' \
    '{"server_id": "10.77.0.1", "device": [{"device_id": "0", "device_ip": "10.78.0.1", "rank_id": "0"}]}, {"server_id": "10.77.0.2", "device": [{"device_id": "0", "device_ip": "10.78.0.2", "rank_id": "1"}]}' >hccl.json
  stubbed run_cluster.sh --device_target CPU --keep_going --config config.yaml data hccl.json 2 0
  set -m
  STUB_DO='0: exit 3' on 0 "${STUBBED[@]}" 2>"$BATS_TEST_TMPDIR/stderr" 3>&- &
  LAUNCHER=$!
  set +m
  says 'rank 0 (device 0) exited with code 3 after [0-9.]* s$'
  for file in $(left_over); do
    ! grep -qs mindspore_scheduler "${file%environ}cmdline" || kill -TERM "$(cut -d/ -f3 <<<"$file")" || true # its child ends with it
  done
  eventually gone "$LAUNCHER"
  wait "$LAUNCHER" || [[ $? -eq 3 ]]
}

@test "when the last rank fails, the job ends" {
  STUB_DO='0: exit 3; 1: await 0, exit 3' ends 3 '*: 2 of 2 ranks failed: ranks 0,1 (--keep_going)*' launch ascend2p.sh --keep_going config.yaml
  [[ $stderr != *'stopping the other'* ]]
  nobody_left
}

@test "MindSpore's scheduler that fails ends the job, but not if it fails after a rank" {
  STUB_DO='0: wait; 1: wait' STUB_SCHEDULER_EXIT=3 ends 3 "*MindSpore's scheduler exited with code 3 *; stopping the other 2 ranks*" \
    launch ascend2p.sh --keep_going config.yaml
  rm -f "$STUB_OUT"/rank*
  launch_ranks '0: usr1; 1: wait' ascend2p.sh --keep_going config.yaml
  ends_rank KILL 1
  says 'rank 1 .*; the other rank goes on$'
  kill -KILL "$(pgrep -f -P "$LAUNCHER" mindspore_scheduler)"
  says "MindSpore's scheduler was ended by SIGKILL after .* s; the other rank goes on$"
  end_by USR1 137 '*: 1 of 2 ranks failed: rank 1 (--keep_going)*'
}

@test "Ctrl-C and --hang_timeout still end the ranks that went on" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --keep_going config.yaml
  ends_rank KILL 1
  says '; the other rank goes on$'
  end_by INT 137 $'*SIGINT: stopping all ranks*\n0 * 143 SIGTERM, stopped by us *'
  [[ "$(launch_json 'r["outcome"]["stopped_by"], r["outcome"].get("also_failed")')" = "('SIGINT', None)" ]]
  STUB_DO='0: wait; 1: exit 7' ends 7 $'*no rank has written to its log for 2 s*\n0 * 134 SIGABRT, stopped by us *' \
    launch ascend2p.sh --keep_going --hang_timeout 2 config.yaml
  [[ "$(launch_json 'r["outcome"]["stopped_by"]')" = hang && $stderr != *aborted* ]] || fail "$stderr"
  nobody_left
}

@test "--max_restarts and --keep_going contradict each other" {
  refused 2 'ascend2p.sh: --keep_going lets ranks go on when one fails, --max_restarts starts all of them again; give one of them; see: *' \
    launch ascend2p.sh --keep_going --max_restarts 1 config.yaml
  launch ascend2p.sh --keep_going --max_restarts 0 config.yaml
}

@test "Open MPI: what --dry_run prints lets ranks go on, too" {
  need mpirun
  HCCN=()
  launch run_mpirun.sh -n 2 --dry_run --keep_going config.yaml >plan.sh
  STUB_DO='0: await 1, tick 5; 1: exit 7' run bash plan.sh
  [[ "$(<logs/*/rank_0.log)" == *'tick 4' ]] || fail "$output"
}

@test "Open MPI: SIGKILL of an agent, whose rank nobody sees any more, still ends the job" {
  need mpirun
  HCCN=()
  launch_ranks '0: wait; 1: wait; 2: children' run_mpirun.sh -n 3 --grace 1 --keep_going config.yaml
  kill -KILL "$(above "$(recorded rank_2 'r["pid"]')" 2)"
  ended
  [[ $status -ne 0 && $stderr == *": mpirun "*" after "* ]] || fail "$status: $stderr"
  nobody_left
}
