#!/usr/bin/env bats
# A job that trains the wrong thing says so: while it runs, in the report and in launch.json; never as a failure.

# bats file_tags=thorough
load ../helper
load ../lab/lab

readonly ALONE="no rank joined MindSpore's cluster: each of the 2 ranks ran alone"

setup() {
  setup_world
  mkdir libs
  : >libs/libmindspore_core.so
}

teardown() {
  lab_down
  end_left_over
}

# uses_mindspore NAME: a program of Python that looks like one of MindSpore to the kernel; its text is on stdin.
uses_mindspore() {
  {
    printf 'import mmap, os, sys, time\n'
    printf 'library = open("libs/libmindspore_core.so", "r+b")\nlibrary.truncate(4096)\n'
    printf 'mapped = mmap.mmap(library.fileno(), 4096)\nrank = int(os.environ["RANK_ID"])\n'
    cat
  } >"$1"
}

# seen: waits until the scheduler of the latest run has seen both ranks.
readonly SEEN='
def seen():
    log = os.path.join(os.environ["LOG_DIR"], "scheduler.log")
    while not os.path.exists(log) or open(log).read().count("has loaded MindSpore") < 2:
        time.sleep(0.05)
'

@test "ranks that never joined: a note at the end, in launch.json and on the page; exit 0" {
  uses_mindspore alone.py <<<"$SEEN"'
seen()
print("epoch: 1 step: 1, loss is 1.5")'
  ends 0 "*$ALONE*" bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 --report alone.py
  [[ $(grep -c "$ALONE" <<<"$stderr") == 1 ]] || fail "$stderr"
  [[ "$(launch_json '[(f["kind"], f["ranks"], f["number"]) for f in r["outcome"]["findings"]]')" = "[('alone', [0, 1], 2)]" ]]
  launch_json_fits
  grep -qF "each of the 2 ranks ran alone" logs/latest/report.html
  ends 0 '*' bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 --no_watch alone.py
  [[ $stderr != *alone:* && "$(launch_json '"findings" in r["outcome"]')" = False ]] || fail "$stderr"
}

@test "nothing is said of a program without MindSpore, of one that fails before it could join, and of one rank" {
  printf 'print("epoch: 1 step: 1, loss is 1.5")\n' >other.py
  ends 0 '*' bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 other.py
  [[ $stderr != *joined* ]] || fail "$stderr"
  uses_mindspore fails.py <<<"$SEEN"'
seen()
sys.exit(3)'
  ends 3 '*' bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 fails.py
  [[ $stderr != *joined* ]] || fail "$stderr"
  ends 0 '*' bash "$SCRIPTS/launch.sh" --device_target CPU -n 1 other.py
  [[ $stderr != *joined* ]] || fail "$stderr"
}

@test "one rank of two does not join: it is named" {
  uses_mindspore half.py <<<"$SEEN"'
import socket
seen()
place = os.environ["MS_SCHED_HOST"], int(os.environ["MS_SCHED_PORT"])
if rank == 1:
    server = socket.create_server(place)  # the stand-in for MindSpore does not listen
while rank == 0:
    try:
        link = socket.create_connection(place)
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
log = os.path.join(os.environ["LOG_DIR"], "scheduler.log")
while "rank 0 is connected" not in open(log).read():
    time.sleep(0.05)'
  ends 0 "*rank 1 did not join MindSpore's cluster, and others did (rank 0)*" bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 half.py
  [[ "$(launch_json '[(f["kind"], f["ranks"], f["others"]) for f in r["outcome"]["findings"]]')" = "[('not-joined', [1], '0')]" ]]
}

@test "while the job runs it is said once, 20 seconds after its start, and again in the report" {
  uses_mindspore slow.py <<<'
for step in range(1, 9999):
    print(f"epoch: 1 step: {step}, loss is {1 / step + rank}", flush=True)
    time.sleep(0.1)'
  behind bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 slow.py
  eventually grep -qF "$ALONE" "$BATS_TEST_TMPDIR/stderr"
  end_by TERM 143 "*$ALONE*rank  device*$ALONE*"
  [[ $(grep -c "$ALONE" <<<"$stderr") == 2 ]] || fail "$stderr"
}

@test "what the logs show: the same losses, nan of one rank first, a rank that counts 1" {
  cat >same.py <<'END'
import os
parallel_mode = "data_parallel"
print("device_num: 1")
for step in range(1, 30):
    print(f"epoch: 1 step: {step}, loss is {2 / step + 0.1234}")
END
  ends 0 '*ranks 0-2 printed "device_num: 1" (line 1 of the log), but the job has 3 ranks*ranks 0-2 printed the same losses to the last digit in all 29 steps*' \
    bash "$SCRIPTS/launch.sh" --device_target CPU -n 3 same.py
  launch_json_fits
  sed -i 's/data_parallel/semi_auto_parallel/; /device_num/d' same.py
  ends 0 '*' bash "$SCRIPTS/launch.sh" --no_check --device_target CPU -n 3 same.py
  [[ "$(launch_json '"findings" in r["outcome"]')" = False ]] || fail "$stderr"
  cat >nan.py <<'END'
import os
for step in range(1, 30):
    bad = step > 12 or (step == 12 and os.environ["RANK_ID"] == "1")
    print(f"epoch: 1 step: {step}, loss is {float('nan') if bad else 2 / step}")
os._exit(5)
END
  ends 5 "*the loss of rank 1 was nan first, in epoch 1 step 12; the others' only from epoch 1 step 13 on*" \
    bash "$SCRIPTS/launch.sh" --device_target CPU -n 3 --keep_going nan.py
}

@test "two ranks write one file: seen while both have it open" {
  cat >saves.py <<'END'
import os, time
file = open("net.ckpt", "wb")
for step in range(1, 9999):
    print(f"epoch: 1 step: {step}, loss is {1 / step + int(os.environ['RANK_ID'])}", flush=True)
    time.sleep(0.1)
END
  behind bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 saves.py
  eventually grep -qF "ranks 0,1 wrote into one file, " "$BATS_TEST_TMPDIR/stderr"
  end_by TERM 143 '*net.ckpt: its content may be damaged*rank  device*net.ckpt: its content may be damaged*'
}

@test "two ranks write one file within milliseconds, as MindSpore does: the kernel tells when" {
  mkdir -p ckpt/a
  cat >saves.py <<'END'
import contextlib, os, time
rank = os.environ["RANK_ID"]
for step in range(1, 9999):
    print(f"epoch: 1 step: {step}, loss is {1 / step + int(rank)}", flush=True)
    for name in ("ckpt/a/net", f"own_{rank}"):
        with contextlib.suppress(FileNotFoundError):
            with open(f"{name}.tmp", "wb") as file:
                for _ in range(300):
                    file.write(bytes(100_000))
            os.rename(f"{name}.tmp", f"{name}.ckpt")
    time.sleep(1)
END
  behind bash "$SCRIPTS/launch.sh" --device_target CPU -n 2 saves.py
  eventually grep -qF "ckpt/a/net.tmp: its content may be damaged" "$BATS_TEST_TMPDIR/stderr"
  end_by TERM 143 '*ranks 0,1 wrote into one file, *rank  device*ranks 0,1 wrote into one file, *'
  [[ $stderr != *own_* ]] || fail "$stderr"
}

@test "mpirun: a host whose program is another one is named" {
  need mpirun ssh
  HCCN=()
  lab_up 2
  "$LAB_SH" root 1 mount -t tmpfs tmpfs "$WORLD"
  printf 'print("mine")\n' >train.py
  on 1 bash -c 'printf "print(\"theirs\")\n" >train.py'
  printf 'node0 slots=1\nnode1 slots=1\n' >hosts
  ends 0 '*train.py is not the same on all hosts: node1 (rank 1) has digest *, others have digest *' \
    on 0 bash "$SCRIPTS/run_mpirun.sh" --device_target CPU --hostfile hosts train.py
}
