#!/usr/bin/env bats
# A rank whose start script ends with 0 while what it has started still runs: the job lasts, and its end is theirs.

# bats file_tags=thorough
load ../helper

setup() {
  setup_world
  # train.py SECONDS [STATUS]: a line at the start and at the end, and one on SIGTERM, with which it ends
  cat >train.py <<'END'
import os, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("told to end", flush=True), os._exit(143)))
print("begins", flush=True)
time.sleep(float(sys.argv[1]))
print("trained as", os.environ["RANK_ID"], flush=True)
status = int(sys.argv[2]) if len(sys.argv) > 2 and os.environ["RANK_ID"] == "1" else 0
os.kill(os.getpid(), status - 128) if status > 128 else sys.exit(status)
END
}

teardown() {
  end_left_over
}

# script LINE...: start.sh with these lines
script() {
  printf '%s\n' '#!/usr/bin/env bash' "$@" >start.sh
  chmod +x start.sh
}

# starts [WORD...]: a launch of two ranks of start.sh, with these options
starts() {
  bash "$SCRIPTS/launch.sh" --device_target CPU --grace 2 "$@" -n 2 ./start.sh
}

# starts_behind: the same in the background, until its trainings are told to be waited for
starts_behind() {
  behind bash "$SCRIPTS/launch.sh" --device_target CPU --grace 2 -n 2 ./start.sh
  eventually grep -q 'ended with 0 and left' "$BATS_TEST_TMPDIR/stderr"
}

@test "the job lasts until what its ranks have left has ended, and says so once" {
  script 'python -S train.py 1.5 >"own_$RANK_ID.txt" 2>&1 &' 'echo started'
  ends 0 '*ranks 0,1 ended with 0 and left 2 processes that still run (*: python -S train.py 1.5, *' starts
  [[ $stderr == *$'\n0     0       0  '* && $(grep -c 'ended with 0' <<<"$stderr") -eq 1 ]] || fail "$stderr"
  grep -qx 'trained as 1' own_1.txt
  grep -qx 'started' logs/latest/rank_1.log
  grep -qx 'trained as 1' logs/latest/rank_1.log # also what went to its own file
  [[ "$(launch_json '[([p["command"] for p in m["left"]], m["seconds"] > 1, m["status"]) for m in [r["outcome"]["members"]["1"]]]')" == "[(['python -S train.py 1.5'], True, 0)]" ]]
  launch_json_fits
}

@test "what a rank has left fails: so does the rank, and its own file has the cause" {
  script 'python -S train.py 1.5 7 >"own_$RANK_ID.txt" 2>&1 &'
  ends 7 '*rank 1 (device 1) ended with 0 and left a process (*: python -S train.py 1.5 7), which exited with code 7 after *' starts
  [[ $stderr == *'    trained as 1'* && $stderr == *'7, failed first'* ]] || fail "$stderr"
  nobody_left
  script 'python -S train.py 1.5 137 &'
  ends 137 '*rank 1 * left a process (*), which was ended by SIGKILL after *' starts
  script 'python -S train.py 1.5 3 | cat &'
  ends 3 '*rank 1 * left a process (*), which exited with code 3 after *' starts
}

@test "what a script has left fails at once, before anybody waits for it" {
  script 'python -S -c "import nothing_of_that_name" >"own_$RANK_ID.txt" 2>&1 &'
  ends 1 '*rank ? (device ?) ended with 0 and left a process (*), which exited with code 1 after *' starts
  script 'python -S -c "import time; time.sleep(0.4); import nothing_of_that_name" >"own_$RANK_ID.txt" 2>&1 &'
  ends 1 "*ModuleNotFoundError: No module named 'nothing_of_that_name'*" starts
}

@test "a script that fails ends what it has left" {
  script 'python -S train.py 600 & echo $! >"pid_$RANK_ID"; exit $((RANK_ID * 5))'
  ends 5 '*rank 1 (device 1) exited with code 5 *' starts
  nobody_left
}

@test "a signal, a limit and the failure of another rank end it, also in a session of its own, with its grace time" {
  script 'setsid python -S train.py 600 &'
  starts_behind
  end_by TERM 143 '*SIGTERM: stopping all ranks*'
  grep -qx 'told to end' logs/latest/rank_0.log
  script 'python -S train.py 600 &'
  ends 124 '*the job has run for 2 s, its --timeout*' starts --timeout 2
  nobody_left
  script '[ "$RANK_ID" = 0 ] && { python -S train.py 600 & exit; }' 'sleep 1.5; exit 4'
  ends 4 '*rank 1 (device 1) exited with code 4 *stopping the other rank*' starts
  nobody_left
}

@test "SIGKILL of the launcher leaves nothing of it" {
  script 'setsid python -S train.py 600 &'
  starts_behind
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

@test "--hang_timeout sees the file of a training, and that it is silent" {
  script '(for i in {1..13}; do echo "$i"; sleep 1; done) >"own_$RANK_ID.txt" 2>&1 &'
  ends 0 '*' starts --hang_timeout 10
  script 'python -S train.py 600 &'
  ends 124 '*no rank has written to its log for 2 s, the --hang_timeout*' starts --hang_timeout 2
  nobody_left
}

@test "--leftovers end: what is left is ended, and the report says so" {
  script 'python -S train.py 600 &'
  refused 2 '*--leftovers kill: write one of wait, end*' starts --leftovers kill
  ends 0 '*ranks 0,1 ended with 0 and left 2 processes that still ran (*); ended because of --leftovers end*write wait at the end of the script*' starts --leftovers end
  nobody_left
  [[ "$(launch_json '[m.get("left_ended") for m in r["outcome"]["members"].values() if "left" in m]')" = "[True, True]" ]]
  launch_json_fits
}

@test "helpers that end a moment later, and daemons, are not mentioned" {
  script 'sleep 0.2 &' 'echo over'
  ends 0 '*' starts
  [[ $stderr != *'and left'* ]] || fail "$stderr"
  cat >daemon.py <<'END'
import os, signal
if os.fork() == 0:
    os.setsid()
    os.chdir("/")
    for stream in (0, 1, 2):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    signal.pause()
END
  script 'python -S daemon.py'
  ends 0 '*' starts
  [[ $stderr != *'and left'* ]] || fail "$stderr"
  nobody_left
}

@test "workers that a Python program leaves are ended, and the launcher says so" {
  printf 'import os, signal\nos.fork() or signal.pause()\nprint("trained", flush=True)\nos._exit(0)\n' >leaves.py
  ends 0 '*ranks 0,1 ended with 0, but not all worker processes (*: these were ended*' \
    bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 leaves.py
  nobody_left
}

@test "what is left when the training has ended is told again, and may be killed without harm" {
  script '(python -S train.py 1.5; sleep 600 &) &'
  starts_behind
  eventually grep -q 'if that does not belong to the training: kill ' "$BATS_TEST_TMPDIR/stderr"
  eval "$(sed -n 's/.*not belong to the training: //p' "$BATS_TEST_TMPDIR/stderr")"
  ended 0
}

@test "agents wait for it, too" {
  need mpirun
  script 'python -S train.py 2 7 >"own_$RANK_ID.txt" 2>&1 &'
  ends 7 '*rank* ended with 0 and left *rank 1 (device 1) ended with 0 and left a process (*: python -S train.py 2 7), which exited with code 7 after *' \
    bash "$SCRIPTS/run_mpirun.sh" --device_target CPU --allow-run-as-root --oversubscribe -n 2 ./start.sh
  [[ $stderr == *'    trained as 1'* ]] || fail "$stderr"
  nobody_left
  script 'setsid python -S train.py 600 &'
  rm -r logs
  behind bash "$SCRIPTS/run_mpirun.sh" --device_target CPU --allow-run-as-root --oversubscribe -n 2 ./start.sh
  eventually grep -sqx begins logs/latest/rank_0.log
  # Before its start script has ended, what rank 0 started is not known to be left, and only killed.
  eventually grep -qE 'ranks 0,1 ended with 0 and left|rank 0 .*ended with 0 and left' "$BATS_TEST_TMPDIR/stderr"
  end_by TERM 143
  grep -qx 'told to end' logs/latest/rank_0.log
  nobody_left
}
