#!/usr/bin/env bats
# What ranks print, on the console and in the report: progress bars, long lines, binary, colours, unfinished lines.

load helper

setup() {
  setup_world
}

# shown TEXT [TEXT2]: what the console prints of a log with TEXT (a format of printf) to a pipe, newlines as |; with
# TEXT2 of two logs.
shown() {
  # shellcheck disable=SC2059 # formats are meant
  printf "$1" >rank_0.log
  # shellcheck disable=SC2059 # the same
  (($# == 1)) || printf "$2" >rank_1.log
  follow $(($# - 1)) | tr '\n' '|'
}

# follow LAST [ASSIGNMENT...]: the console of ranks 0 to LAST, whose logs are in this folder, until go.txt is there
follow() {
  # shellcheck disable=SC2016 # for the other bash
  LIB=$SCRIPTS/lib bash -c '
    set -euo pipefail
    for part in log system clock bus output console; do
      source "$LIB/$part.sh"
    done
    supervise::close_pipes() { :; }
    PLAN_LOG_DIR=. PLAN_RANKS=($(seq 0 "$1"))
    for word in "${@:2}"; do
      declare "${word?}"
    done
    (($1 == 0)) || console::show all
    console::open
    until [[ -e go.txt || $# == 1 ]]; do
      sleep 0.02
    done
    console::finish' ranks "$@"
}

# prints EXPECTED TEXT...: that is what `shown` shows
prints() {
  local -r found=$(shown "${@:2}")
  [[ $found == "$1" ]] || fail "$(printf '%q instead of %q' "$found" "$1")"
}

@test "a pipe gets lines as they are, and of a redrawn line the last state" {
  prints 'a|b|' 'a\nb'
  prints $'a\r|b\r|' 'a\r\nb\r\n'
  prints '100%|' '\r 1%%\r 50%%\r100%%'
  prints '100%|done|' '\r 1%%\r100%%\ndone\n'
  prints '100%|' '1%%\r50%%\r100%%\r'
  prints '100%|end|' '1%%\r100%%\r\nend\n'
  prints '100%|end|' '\r100%%\r     \r\nend'
  prints '||a|||b|||' '\n\na\n\n\nx\rb\n\n\n'
  prints $'\e[31m世\e[0m界|' '\e[31m世\e[0m界'
  prints '|' '\r\r\r\n'
}

@test "several logs: the same, and each line has its rank" {
  prints '[0] 100%|[1] |[1] b|[0] a|[1] 9%|' '\r 1%%\r100%%\na' '\nb\n1%%\r9%%'
  prints $'[0] a\r|[0] 世|[1] b|' 'a\r\n世\n' 'b'
}

@test "redrawn lines and characters that are cut anywhere come out whole" {
  python - <<'PY'
bar = "".join(f"\r{n:3}%|世界| {n}/100" for n in range(101)) + "\n"
text = "".join(f"epoch {n}\n\n{bar}\rloss {n}\n" for n in range(60)).encode()
with open("expected", "w") as file:
    file.write("".join(f"epoch {n}\n\n100%|世界| 100/100\nloss {n}\n" for n in range(60)))
open("rank_0.log", "wb").write(text)
open("rank_1.log", "wb").write(text)
PY
  follow 0 >one
  cmp one expected
  follow 1 >both
  cmp <(sed -n 's/^\[0\] //p' both) expected
  cmp <(sed -n 's/^\[1\] //p' both) expected
}

# bats test_tags=thorough
@test "8 MB of a progress bar are one line of the console" {
  python -c 'print("".join(f"\r{n:9}" for n in range(800000)), end="")' >rank_0.log
  [[ $(follow 0) == '   799999' ]]
}

@test "binary passes, and a line that never ends comes in pieces with its rank" {
  head -c 300000 /dev/urandom | tr '\0\377' x | python -c 'import sys; sys.stdout.buffer.write(b"\2" + sys.stdin.buffer.read())' >rank_0.log
  cmp <(follow 0) <(cat rank_0.log && echo)
  python -c 'print("x" + "世" * 100000, end="")' >rank_0.log
  echo short >rank_1.log
  follow 1 >found
  [[ $(wc -l <found) -gt 10 ]]
  python - <<'PY'
lines = [line[4:] for line in open("found", encoding="utf-8") if line.startswith("[0] ")]
assert all(len(line.encode()) < 20000 for line in lines)
assert all(line.endswith(" ...\n") for line in lines[:-1]) and all(line.startswith("... ") for line in lines[1:])
assert "".join(lines).replace(" ...\n... ", "") == "x" + "世" * 100000 + "\n"
PY
}

@test "an unfinished line is on a pipe at once, and a bar's state now and then" {
  : >rank_0.log
  follow 0 CONSOLE_STATE_EVERY=10 >found &
  local -r reader=$!
  printf 'loading' >>rank_0.log
  eventually grep -qx loading found
  printf ' done\n\r 1%%' >>rank_0.log
  eventually grep -qx ' 1%' found
  printf '\r 2%%\r 3%%' >>rank_0.log
  eventually grep -qx ' 3%' found
  printf '\n' >>rank_0.log
  : >go.txt
  wait "$reader"
  [[ $(<found) == $'loading done\n 1%\n 3%' || $(<found) == $'loading done\n 1%\n 2%\n 3%' ]] || fail "$(<found)"
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
until(b"\r 10%|#\r\033[Kascend2p.sh: rank 1 (device 1) exited with code 4")
while more():
    pass
assert child.wait() == 4, seen
assert b"\033[K" not in seen.partition(b"stopping the other rank")[2], seen
' bash "$SCRIPTS/ascend2p.sh" --device_target CPU --grace 1 --train_script bar.py "${HCCN[@]}" config.yaml
}

@test "several logs of which one is not there are shown" {
  ln -s no-such-folder/log rank_0.log
  : >go.txt
  printf 'here\n' >rank_1.log
  run --separate-stderr follow 1
  [[ $output == '[1] here' ]] || fail "$output"
}

# bats test_tags=thorough
@test "the status is below an unfinished line, and goes without a trace" {
  printf 'line\n\r 10%%' >rank_0.log
  export -f follow
  export SCRIPTS
  on_terminal '
start("bash", "-c", "follow 0 CONSOLE_STATUS_AFTER=10")
until(*(b"no output for 0:0%d\0338" % seconds for seconds in range(1, 10)))  # a busy machine shows not each
before = seen.rpartition(b"ranks: 1 rank running")[0]
assert b" 10%\033D\033[A\0337\033D\r\033[K" in before, seen
open("rank_0.log", "a").write("\r 20%")
until(b"\0338\0337\033D\r\033[K\0338\r 20%")
open("go.txt", "w")
rest()'
}

@test "several logs on a terminal: states now and then" {
  printf '\r 1%%\r 2%%' >rank_0.log
  printf 'a\n' >rank_1.log
  export -f follow
  export SCRIPTS
  NO_COLOR=1 on_terminal '
start("bash", "-c", "follow 1 CONSOLE_STATE_EVERY_TERMINAL=5")
until(b"[1] a\r\n")
until(b"[0]  2%\r\n")
open("rank_0.log", "a").write("\r 2%\n")
open("go.txt", "w")
assert rest().count(b"2%") == 1, seen'
}

# ---- the report ----------------------------------------------------------------------------------

# fails_after PROGRAM: launches a rank that runs the line of Python and exits with 3; its report is in `stderr`.
fails_after() {
  printf 'import sys\nout = sys.stdout.buffer\n%s\nout.flush()\nsys.exit(3)\n' "$1" >fails.py
  run -3 --separate-stderr bash "$SCRIPTS/ascend1p.sh" --device_target CPU --console none --train_script fails.py \
    "${HCCN[@]}" config.yaml
}

@test "8 MB of a progress bar are one short line of the report" {
  fails_after 'out.write(b"".join(b"\r%8d%%" % n for n in range(800000)))'
  [[ $stderr == *'the last lines of '*$':\n      799999%\n'* ]] || fail "${stderr:0:2000}"
  ((${#stderr} < 2000)) || fail "${#stderr}"
}

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

# tail_of LOG: what an agent sends
tail_of() {
  # shellcheck source=scripts/lib/output.sh
  source "$SCRIPTS/lib/output.sh"
  output::tail "$1"
}

@test "what an agent of another host sends of its log is as short" {
  python -c 'print("".join(f"\r{n:8}%" for n in range(100000)) + "\n" + "x" * 100000)' >rank_0.log
  [[ $(tail_of rank_0.log) == "... $(printf 'x%.0s' {1..396}) ..." ]]
  python -c 'print("a\n" + "".join(f"\r{n:8}%" for n in range(100)))' >rank_0.log
  [[ $(tail_of rank_0.log) == $'a\n      99%' ]]
}
