#!/usr/bin/env bats
# What ranks print, on the console and in the report: progress bars, long lines, binary, colours, unfinished lines.

load ../helper

setup() {
  setup_world
}

# on_terminal PROGRAM: runs the lines of Python PROGRAM with `start(COMMAND...)`, which runs a command on a terminal,
# `until(TEXT...)`, which reads what it shows up to one of these, and `rest()`. All of it has a minute.
on_terminal() {
  TERM=xterm python - "${@:2}" <<PY
import os, pty, select, subprocess, sys, time

ours, theirs = pty.openpty()
seen = b""
end = time.monotonic() + 60

def start(*command):
    global child
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)

def more():
    global seen
    assert select.select([ours], [], [], max(0, end - time.monotonic()))[0], seen
    try:
        got = os.read(ours, 65536)
    except OSError:
        got = b""
    seen += got
    return got

def until(*texts):
    while not any(text in seen for text in texts):
        assert more(), (texts, seen)

def rest():
    while more():
        pass
    assert child.wait() == 0, seen
    return seen

$1
PY
}

# bats test_tags=slow
@test "a terminal gets a progress bar as it is written, before the rank ends" {
  cat >bar.py <<'END'
import os, sys, time
sys.stdout.write("\r 10%|\033[32m#\033[0m")
sys.stdout.flush()
while not os.path.exists("go.txt"):
    time.sleep(0.02)
sys.stdout.write("\r100%|#")
END
  on_terminal '
start(*sys.argv[1:])
until(b"\r 10%|\033[32m#\033[0m")
assert child.poll() is None
open("go.txt", "w")
until(b"\r100%|#\r\n")
rest()' bash "$SCRIPTS/ascend1p.sh" --device_target CPU --train_script bar.py "${HCCN[@]}" config.yaml
}

# bats test_tags=slow
@test "a message takes the place of a bar, and does not hang on its end" {
  cat >bar.py <<'END'
import os, sys, time
if os.environ["RANK_ID"] == "0":
    sys.stdout.write("\r 10%|#")
    sys.stdout.flush()
while not os.path.exists("go.txt"):
    time.sleep(0.02)
sys.exit(os.environ["RANK_ID"] == "1" and 4 or time.sleep(60))
END
  on_terminal '
start(*sys.argv[1:])
until(b"\r 10%|#")
open("go.txt", "w")
until(b"\r 10%|#\r\033[Kascend2p.sh: \033[1;31mrank 1 (device 1) exited with code 4")
while more():
    pass
assert child.wait() == 4, seen
assert b"\033[K" not in seen.partition(b"stopping the other rank")[2], seen
' bash "$SCRIPTS/ascend2p.sh" --device_target CPU --grace 1 --train_script bar.py "${HCCN[@]}" config.yaml
}

# ---- the report ----------------------------------------------------------------------------------

# fails_after PROGRAM: launches a rank that runs the line of Python and exits with 3; its report is in `stderr`.
fails_after() {
  printf 'import sys\nout = sys.stdout.buffer\n%s\nout.flush()\nsys.exit(3)\n' "$1" >fails.py
  run -3 --separate-stderr bash "$SCRIPTS/ascend1p.sh" --device_target CPU --console none --train_script fails.py \
    "${HCCN[@]}" config.yaml
}

# bats test_tags=slow
@test "8 MB of a progress bar are one short line of the report" {
  fails_after 'out.write(b"".join(b"\r%8d%%" % n for n in range(800000)))'
  [[ $stderr == *'the last lines of '*$':\n      799999%\n'* ]] || fail "${stderr:0:2000}"
  ((${#stderr} < 2000)) || fail "${#stderr}"
}

# bats test_tags=slow
@test "the report bounds lines and bytes, and marks what it cuts" {
  fails_after 'out.write(b"".join(b"%d\n" % n for n in range(100)) + b"x" * 1000 + b"\n")'
  [[ $stderr == *$':\n    86\n'*$'    99\n    xxx'*$'x ...\n'* && $stderr != *$'    85\n'* ]] || fail "$stderr"
  fails_after 'out.write("世".encode() * 1000000)'
  [[ $stderr == *$':\n    ... '*$'世 ...\n'* ]] || fail "${stderr:0:2000}"
  ((${#stderr} < 3000)) || fail "${#stderr}"
}

@test "the report passes no colour, no escape sequence and no binary to the terminal" {
  fails_after 'out.write(b"\x1b[31mred\x1b[0m\x1b]0;evil\x07\x1b[2J\n\x00\xfe\x9b\x7f\n")'
  [[ $stderr == *$'    red\\x1b]0;evil\\x07\\x1b[2J\n    \\xfe\\x9b\\x7f\n'* ]] || fail "$stderr"
}

# bats test_tags=slow
@test "the output of the ranks that are named; msrun's option means the same" {
  export STUB_DO='0: print 1; 1: print 2; 2: print 3'
  ends 0 '*' launch launch.sh -n 3 --console 1 config.yaml
  [[ $output == $'line 0\nline 1\n'* && $output != *'[1]'* ]] || fail "$output"
  ends 0 '*' launch launch.sh -n 3 --tail_worker_log=0,2 config.yaml
  [[ $output == *'[0] line '* && $output == *'[2] line '* && $output != *'[1] '* ]] || fail "$output"
  ends 2 '*launch.sh: --console: the job has no rank 7; it has 3 ranks, 0 to 2*' launch launch.sh -n 3 --console 7 config.yaml
}
