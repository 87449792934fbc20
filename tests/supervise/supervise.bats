#!/usr/bin/env bats
# A rank fails, or somebody stops the launcher: the right exit code, and nothing left running.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
}

# ends_with STATUS PATTERN [WHAT]: a launch of four ranks, which do WHAT, ends so, and leaves nothing
ends_with() {
  rm -f "$STUB_OUT"/*
  STUB_DO=${3-} ends "$1" "$2" launch ascend4p.sh --grace 1 config.yaml
  nobody_left
}

@test "all ranks end with 0: so does the launch" { ends_with 0 '*exit 0; logs and launch.json are in *'; }

@test "a rank that fails ends the others, and its code is the launch's" {
  ends_with 7 '*rank 2 (device 6) exited with code 7 after * s; stopping the other 3 ranks*' \
    '0: wait; 1: wait; 2: await 0 1 3, exit 7; 3: wait'
  [[ $stderr == *'    rank 2 gives up'* ]] || fail "the end of its log is missing: $stderr"
  [[ "$(launch_json 'r["outcome"]["first_failure"], r["outcome"]["exit"], r["outcome"]["members"]["2"]["status"]')" = "('2', 7, 7)" ]]
}

@test "a rank that failed before it wrote anything: the report shows no log, and says so" {
  printf 'import os, sys\nsys.exit(int(os.environ["RANK_ID"]))\n' >silent.py
  run -1 --separate-stderr bash "$SCRIPTS/ascend2p.sh" --no_check --hccn_conf hccn.conf --train_script silent.py config.yaml
  [[ $stderr == *'rank_1.log is empty: it ended before it wrote anything'* ]] || fail "$stderr"
  [[ $stderr != *'the last lines of'* ]] || fail "$stderr"
}

@test "a rank that ends with 0 while others run is no failure" {
  export STUB_DO='1: wait'
  launch_behind ascend2p.sh config.yaml
  eventually grep -q '"pid"' "$STUB_OUT/rank_0.json"
  eventually ranks_up 1
  kill -0 "$LAUNCHER"
  kill "$(recorded rank_1 'r["pid"]')"
  ended 143
}

@test "a rank that is killed by a signal is named with it" {
  ends_with 139 '*rank 1 (device 5) was ended by SIGSEGV*' '0: wait; 1: await 0 2 3, kill SEGV; 2: wait; 3: wait'
}

@test "rank 0 fails, the last rank fails, all fail at once" {
  ends_with 3 '*rank 0 (device 4) exited with code 3*' '0: await 1 2 3, exit 3; 1: wait; 2: wait; 3: wait'
  ends_with 4 '*rank 3 (device 7) exited with code 4*' '0: wait; 1: wait; 2: wait; 3: await 0 1 2, exit 4'
  ends_with 5 '*rank ? (device ?) exited with code 5*' '0: exit 5; 1: exit 5; 2: exit 5; 3: exit 5'
}

@test "SIGKILL and SIGTERM of a rank are failures of it, with these signals" {
  ends_with 137 '*rank 3 (device 7) was ended by SIGKILL*' '0: wait; 1: wait; 2: wait; 3: await 0 1 2, kill KILL'
  ends_with 143 '*rank 3 (device 7) was ended by SIGTERM*' '0: wait; 1: wait; 2: wait; 3: await 0 1 2, kill TERM'
}

@test "64 ranks: one fails, all end, and those that ended alike share a line" {
  export STUB_DO
  STUB_DO="63: exit 9$(printf '; %d: wait' {0..62})"
  for name in {0..63}; do
    echo "address_$name=10.2.0.$name" | sed 's/\.0$/.64/'
  done >hccn.conf
  bash "$FIXTURES/many_ranks.sh" --no_check --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf config.yaml \
    >"$BATS_TEST_TMPDIR/stdout" 2>stderr || status=$?
  [[ $status -eq 9 ]] || fail "$(<stderr)"
  grep -q '^143 SIGTERM, stopped by us: ranks 0-62$' stderr || fail "$(<stderr)"
  grep -q '^63    63      9, failed first ' stderr || fail "$(<stderr)"
  nobody_left
}

@test "a trainer that cannot be started fails its rank with 127" {
  launch_python="$BATS_TEST_TMPDIR/bin/python"
  mkdir "$BATS_TEST_TMPDIR/bin"
  # launches like Python, and is not there any more when the ranks start
  printf '#!/usr/bin/env bash\nrm -f "$0"; exec "%s" "$@"\n' "$PYTHON" >"$launch_python"
  chmod +x "$launch_python"
  PYTHON=$launch_python run -127 --separate-stderr launch_npu ascend2p.sh config.yaml
  [[ $stderr == *'exited with code 127'*'No such file'* ]] || fail "$stderr"
  nobody_left
}

@test "ranks that ignore SIGTERM are killed after the grace time" {
  ends_with 5 '*137 SIGKILL*' '0: ignore TERM; 1: ignore TERM; 2: ignore TERM; 3: await 0 1 2, exit 5'
}

@test "a stopped rank is ended too" {
  ends_with 5 '*' '0: wait; 1: stop; 2: wait; 3: await 0 1 2, exit 5'
  [[ $stderr != *SIGKILL* ]] || fail "it never saw SIGTERM: $stderr"
}

@test "children of ranks end with them, also those that called setsid" {
  launch_ranks '0: children; 1: leave children; 2: wait; 3: wait' ascend4p.sh --grace 1 config.yaml
  end_by TERM 143
}

@test "children that a successful rank leaves end with the launch, where that is wanted" {
  STUB_DO='0: leave children; 1: leave children' ends 0 '*' launch ascend4p.sh --grace 1 --leftovers end config.yaml
  nobody_left
}

@test "what a rank leaves in its group is told to end soon, not only with the job" {
  export STUB_DO='0: wait; 1: leave child'
  launch_behind ascend2p.sh --leftovers end config.yaml
  eventually grep -q '^child ' logs/latest/rank_1.log
  eventually gone "$(sed -n 's/^child //p' logs/latest/rank_1.log)"
  [[ $(recorded rank_0 'r["pid"]') ]] && kill -0 "$(recorded rank_0 'r["pid"]')"
  end_by TERM
}

# stopped_by SIGNAL STATUS
stopped_by() {
  launch_ranks '0: wait; 1: wait' ascend2p.sh --grace 1 config.yaml
  end_by "$1" "$2" "*SIG$1: stopping all ranks*"
  [[ "$(launch_json 'r["outcome"]["stopped_by"]')" = "SIG$1" ]]
}

@test "SIGINT to the launcher ends everything" { stopped_by INT 130; }
@test "SIGTERM to the launcher ends everything" { stopped_by TERM 143; }
@test "SIGHUP to the launcher ends everything" { stopped_by HUP 129; }
@test "SIGQUIT to the launcher ends everything" { stopped_by QUIT 131; }

# group_stopped_by SIGNAL STATUS: as a terminal does it, to the launcher's whole process group
group_stopped_by() {
  launch_ranks '0: wait; 1: children' ascend2p.sh --grace 1 config.yaml
  kill -s "$1" -- "-$LAUNCHER"
  ended "$2"
}

@test "SIGINT to the launcher's group ends everything" { group_stopped_by INT 130; }
@test "SIGTERM to the launcher's group ends everything" { group_stopped_by TERM 143; }
@test "SIGHUP to the launcher's group ends everything" { group_stopped_by HUP 129; }
@test "SIGQUIT to the launcher's group ends everything" { group_stopped_by QUIT 131; }

@test "a launcher started with & in a script, where SIGINT is ignored: SIGTERM ends it, Ctrl-C does not reach it" {
  export STUB_DO='0: wait; 1: wait'
  bash -c '"$@" >/dev/null 2>stderr & echo $! >pid' - bash "$SCRIPTS/ascend2p.sh" --device_target CPU \
    --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf config.yaml 3>&-
  eventually ranks_up 0 1
  kill -INT "$(<pid)"
  kill -TERM "$(<pid)"
  eventually gone "$(<pid)"
  grep -q 'SIGTERM: stopping' stderr || fail "$(<stderr)"
  run ! grep -q 'SIGINT' stderr
  nobody_left
}

@test "SIGSTOP and SIGCONT of the launcher: it goes on, and has missed nothing" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh config.yaml
  kill -STOP "$LAUNCHER"
  eventually stands_still "$LAUNCHER"
  kill -KILL "$(recorded rank_1 'r["pid"]')"
  eventually gone "$(recorded rank_1 'r["pid"]')"
  end_by CONT 137 '*rank 1 (device 1) was ended by SIGKILL*'
}

@test "Ctrl-C while the plan's Python starts gives no traceback: the signal is ignored until main.py runs" {
  # shellcheck disable=SC2016 # for the interpreter
  printf '#!/bin/sh\ngrep SigIgn /proc/$$/status >ignored\nexec "%s" "$@"\n' "$PYTHON" >starting
  chmod +x starting
  PYTHON=./starting launch ascend2p.sh --dry_run config.yaml
  local -r mask=0x$(cut -f 2 ignored)
  ((mask >> 1 & 1)) || fail "$mask"
}

@test "Ctrl-C while the plan is being made ends it, and what it asks, without a traceback" {
  export HCCN_SIM=$BATS_TEST_TMPDIR/sim HCCN_SIM_LOG=$BATS_TEST_TMPDIR/calls PATH=$FIXTURES/bin:$PATH
  mkdir "$HCCN_SIM"
  cp hccn.conf "$HCCN_SIM"
  echo hang >"$HCCN_SIM/fault_1"
  launch_behind ascend2p.sh config.yaml
  eventually grep -q -- '-i 1 -ip -g' "$HCCN_SIM_LOG"
  kill -INT -- "-$LAUNCHER"
  ended
  was 130 ''
  eventually nobody_left
}

@test "a second signal does not wait for the grace time" {
  launch_ranks '0: ignore TERM; 1: ignore TERM' ascend2p.sh --grace 600 config.yaml
  kill -INT "$LAUNCHER"
  eventually grep -q 'SIGINT: stopping' "$BATS_TEST_TMPDIR/stderr"
  end_by INT 130
}

@test "a first signal after a failure leaves the others their grace time, a second does not" {
  export STUB_DO='0: await 1, exit 3; 1: ignore TERM'
  launch_behind ascend2p.sh --grace 2 config.yaml
  eventually grep -q 'stopping the other' "$BATS_TEST_TMPDIR/stderr"
  end_by TERM 3 '*SIGTERM: the ranks are already stopping*137 SIGKILL, stopped by us   [2-9].*'
  rm "$STUB_OUT"/*
  launch_behind ascend2p.sh --grace 600 config.yaml
  eventually grep -q 'stopping the other' "$BATS_TEST_TMPDIR/stderr"
  kill -INT "$LAUNCHER"
  eventually grep -q 'already stopping' "$BATS_TEST_TMPDIR/stderr"
  end_by INT 3
}

@test "a launcher started with SIGHUP ignored, as by nohup, survives the hang-up" {
  export STUB_DO='0: wait; 1: wait'
  (trap '' HUP && launch_behind ascend2p.sh config.yaml && echo "$LAUNCHER" >pid)
  LAUNCHER=$(<pid)
  eventually ranks_up 0 1
  kill -HUP "$LAUNCHER"
  kill "$(recorded rank_0 'r["pid"]')" # the launch still notices: so it has survived
  eventually gone "$LAUNCHER"
  grep -q 'rank 0 (device 0) was ended by SIGTERM' "$BATS_TEST_TMPDIR/stderr"
  run ! grep -q SIGHUP "$BATS_TEST_TMPDIR/stderr"
}

@test "SIGUSR1 and SIGUSR2 go through to the ranks; one that expects a signal goes on or ends well, another fails by it" {
  launch_ranks '0: usr1; 1: ignore USR1' ascend2p.sh config.yaml
  kill -USR1 "$LAUNCHER"
  eventually grep -qx 'got SIGUSR1' logs/latest/rank_0.log
  kill -0 "$LAUNCHER"
  end_by USR2 140 $'*\n0     0       0  *\n1     1       140 SIGUSR2, failed first *'
}

@test "SIGKILL of the launcher leaves nothing running" {
  launch_ranks '0: children; 1: ignore TERM' ascend2p.sh --grace 1 config.yaml
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

@test "SIGKILL of the guardian leaves the job running, and its end in order" {
  launch_ranks '0: wait; 1: wait' ascend2p.sh config.yaml
  local -r guardian=$(pgrep -P "$LAUNCHER" -f mindspore-launch-guardian)
  [[ "$(ps -o args= -p "$guardian")" != *ascend2p* ]] # who kills by the script's name is not to hit it
  kill -KILL "$guardian"
  end_by TERM 143
}

@test "the scheduler is watched like a rank" {
  export STUB_DO='0: wait; 1: wait' STUB_SCHEDULER_EXIT=9
  ends 9 "*MindSpore's scheduler exited with code 9*scheduler.log*" launch ascend2p.sh config.yaml
  nobody_left
}

@test "every line of every rank is in its log, and rank 0's on stdout" {
  STUB_DO='0: print 3000; 1: print 3000' ends 0 '*' launch ascend2p.sh config.yaml
  [[ "$output" = "$(seq -f 'line %g' 0 2999)"$'\nno end' ]]
  cmp logs/latest/rank_0.log logs/latest/rank_1.log
}

@test "the last lines of rank 0 come before the table" {
  export STUB_DO='0: print 3000'
  run launch ascend2p.sh config.yaml
  [[ $output == *$'\nline 2999\nno end\n'*'rank  device  exit'* ]] || fail "$output"
}

@test "stdout that nobody reads does not end the job" {
  export STUB_DO='0: print 3000; 1: print 3000'
  launch ascend2p.sh config.yaml | true
  [[ "${PIPESTATUS[0]}" -eq 0 ]]
  [[ "$(wc -l <logs/latest/rank_1.log)" -eq 3000 ]]
}

@test "stdin, stdout and stderr closed: the job runs and its code comes back" {
  export STUB_DO='1: await 0, exit 3'
  run -3 bash -c 'bash "$@" <&- >&- 2>&-' - "$SCRIPTS/ascend2p.sh" --no_check \
    --train_script "$FIXTURES/stub_trainer.py" --hccn_conf hccn.conf config.yaml
  ranks_up 0 1
}

# behind_its_back SIGNAL RANK: while the launcher stands still, SIGNAL ends RANK, and the kernel keeps that for it.
behind_its_back() {
  kill -STOP "$LAUNCHER"
  kill -s "$1" "$(recorded "rank_$2" 'r["pid"]')"
  eventually gone "$(recorded "rank_$2" 'r["pid"]')"
}

# one_stop SIGNAL STATUS: a signal that hits a rank a moment before the launcher
one_stop() {
  launch_ranks '0: wait; 1: ignore TERM' ascend2p.sh --grace 2 config.yaml
  behind_its_back "$1" 0
  kill -s "$1" "$LAUNCHER"
  end_by CONT "$2"
  [[ $stderr == *"SIG$1: stopping all ranks"*"$2 SIG$1, stopped by us"*$'\n1 '*'137 SIGKILL, stopped by us   '[2-9].* ]] || fail "$stderr"
  [[ $stderr != *'was ended by'* ]] || fail "$stderr"
  nobody_left
}

@test "SIGTERM that hits a rank a moment before the launcher is one stop: no rank failed, the others have their grace time" {
  one_stop TERM 143
}

@test "the same with SIGINT, as LSF sends it" {
  one_stop INT 130
}

@test "SIGTERM of a rank is a failure, also when all others end well in that moment" {
  launch_ranks '0: wait; 1: usr1' ascend2p.sh config.yaml
  behind_its_back TERM 0
  behind_its_back USR1 1
  end_by CONT 143 '*rank 0 (device 0) was ended by SIGTERM*'
}

@test "SIGTERM to every process of the job at once, as Slurm's scancel sends it, leaves the ranks their grace time" {
  launch_ranks '0: ignore TERM; 1: ignore TERM' ascend2p.sh --grace 2 config.yaml
  # shellcheck disable=SC2046 # a list of numbers
  kill -TERM $(left_over | cut -d/ -f3)
  ended 143 $'*\n0 * 137 SIGKILL, stopped by us   [2-9].*\n1 * 137 SIGKILL, stopped by us   [2-9].*'
}

# policy PID: its scheduling policy, as chrt names it.
policy() {
  chrt --pid "$1" | sed -n 's/.* policy: //p'
}

@test "ranks that find one another by MindSpore have the batch policy, their launcher has the one that it had" {
  need chrt
  local own
  own=$(policy "$BASHPID")
  launch_ranks '0: wait; 1: wait' ascend2p.sh config.yaml
  eventually has_policy "$LAUNCHER" "$own"
  [[ "$(policy "$(recorded rank_0 'r["pid"]')") $(policy "$(recorded rank_1 'r["pid"]')")" == 'SCHED_BATCH SCHED_BATCH' ]]
  end_by TERM 143
  chrt --batch --pid 0 "$BASHPID"
  rm "$STUB_OUT"/rank_*.json
  launch_ranks '0: wait; 1: wait' ascend2p.sh config.yaml
  [[ "$(policy "$LAUNCHER")" == SCHED_BATCH ]]
  end_by TERM 143
}

# has_policy PID POLICY: whether it has it.
has_policy() {
  [[ $(policy "$1") == "$2" ]]
}
