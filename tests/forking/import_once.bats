#!/usr/bin/env bats
# --import_once: one process imports, and the ranks are its forks.

load ../helper

setup() {
  setup_world
  printf 'import os\nNUMBER = 3\nprint("heavy imported by", os.getpid(), flush=True)\n' >heavy.py
  cp "$FIXTURES/tells_itself.py" .
  CPU=(bash "$SCRIPTS/launch.sh" --device_target CPU -n 2)
}

teardown() {
  end_left_over
}

# cpu WORD...: the launch of two ranks, on CPU
cpu() {
  "${CPU[@]}" "$@"
}

# importers: how many processes have imported the module for the ranks, as the first lines of their logs have it
importers() {
  grep -hm1 '^heavy imported by' logs/latest/rank_*.log | sort -u | wc -l
}

# differs WORD...: what the program of these words tells of itself when it is started in the two ways, and differs
differs() {
  local way
  for way in --import_once=heavy ''; do
    mkdir -p "$BATS_TEST_TMPDIR/$way"
    ends 0 '*' cpu ${way:+"$way"} "$@"
    [[ -z $way && $(importers) -eq 2 || -n $way && $(importers) -eq 1 ]] || fail "$(head logs/latest/*.log)"
    [[ ! -e logs/latest/imports.log ]] || fail "$(ls -A logs/latest)"
    sed -E 's/launch-[0-9TZ]+-[0-9]+/RUN/g; s/0x[0-9a-f]+/ADDRESS/g; s/(_PORT[=": ]+)[0-9]+/\1N/' "$STUB_OUT/rank_1.json" >"$BATS_TEST_TMPDIR/$way.json"
  done
  diff "$BATS_TEST_TMPDIR/.json" "$BATS_TEST_TMPDIR/--import_once=heavy.json"
}

# bats test_tags=thorough
@test "a program cannot tell that it is a fork: a file, with a path, a module, a package" {
  differs tells_itself.py --word ''
  mkdir -p sub package
  cp tells_itself.py heavy.py sub/
  cp tells_itself.py package/inner.py
  differs "$PWD/sub/../sub/tells_itself.py" -x
  differs -m tells_itself a b
  differs -m package.inner
  ln -s ../sub/tells_itself.py package/link.py
  differs package/link.py
}

# bats test_tags=thorough
@test "nor can it with words, cores and a PYTHONPATH of its own, or with another sitecustomize" {
  differs --per_rank_words tells_itself.py --me '{rank}{rank}' '{run}'
  differs --bind_core tells_itself.py
  PYTHONPATH='' differs tells_itself.py
  printf 'import os\nFOUND = os.environ.get("PYTHONPATH")\nprint("mine", FOUND)\n' >"$BATS_TEST_TMPDIR/sitecustomize.py"
  PYTHONPATH=$FIXTURES/stub_mindspore:$BATS_TEST_TMPDIR: differs tells_itself.py
  grep -q "^mine $FIXTURES/stub_mindspore:$BATS_TEST_TMPDIR:$" logs/latest/rank_1.log
}

# bats test_tags=slow
@test "exit codes, signals and errors are those of each rank" {
  printf '%s\n' 'import atexit, heavy, os, sys, signal' 'atexit.register(print, "at the end", flush=True)' \
    'if os.environ["RANK_ID"] == "1":' '    exec(sys.argv[1])' >rank.py
  ends 7 '*rank 1 (device 1) exited with code 7*' cpu --import_once=heavy rank.py 'sys.exit(7)'
  grep -qx 'at the end' logs/latest/rank_1.log
  ends 137 '*rank 1 (device 1) was ended by SIGKILL*' cpu --import_once=heavy rank.py 'os.kill(os.getpid(), signal.SIGKILL)'
  ends 139 '*rank 1 (device 1) was ended by SIGSEGV*' cpu --import_once=heavy rank.py 'os.kill(os.getpid(), signal.SIGSEGV)'
  grep -q '^Fatal Python error: Segmentation fault' logs/latest/rank_1.log # PYTHONFAULTHANDLER
  ends 1 '*rank 1 (device 1) exited with code 1*' cpu --import_once=heavy rank.py '1 / 0'
  [[ $(grep -A1 '^Traceback' logs/latest/rank_1.log) == *$'\n  File "'"$PWD/rank.py\", line 4, in <module>" ]] || fail "$(<logs/latest/rank_1.log)"
  [[ $(importers) -eq 1 ]]
  nobody_left
}

# bats test_tags=slow
@test "an import that forks cannot share is named, and each rank imports for itself" {
  local line why
  printf 'import heavy\n' >program.py
  while IFS='|' read -r line why; do
    printf '%s\nimport os\nprint("heavy imported by", os.getpid())\n' "$line" >heavy.py
    ends "${why%%:*}" "*note: --import_once: the import of heavy ${why#*:}; each rank imports for itself*" cpu --import_once=heavy program.py
    [[ ${why%%:*} -ne 0 || $(importers) -eq 2 ]] || fail "$line: $(head logs/latest/*.log)"
  done <<'LINES'
import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()|0:starts threads (1), which forks do not have
import socket; s = socket.socket()|0:opens socket:\[*\], which forks would share
import tempfile; f = tempfile.TemporaryFile()|0:opens *, which forks would share
import subprocess; p = subprocess.Popen(["sleep", "1"])|0:starts processes (1)
import os; rank = os.getenv("RANK_ID")|0:reads RANK_ID, which each rank has for itself
import os; rank = "DEVICE_ID" in os.environ|0:reads DEVICE_ID, which each rank has for itself
import no_such_module|1:failed: ModuleNotFoundError: No module named 'no_such_module'
raise SystemExit(4)|4:failed: SystemExit: 4
LINES
  nobody_left
}

# bats test_tags=slow
@test "a parent that dies before it has forked all ranks ends the job" {
  printf 'import heavy\n' >program.py
  printf 'import os, signal\nprint("in the parent", flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n' >heavy.py
  ends 137 '*the process that imports for all ranks was ended by SIGKILL*the last lines of *imports.log:*in the parent*' cpu --import_once=heavy program.py
  printf 'import os\nos._exit(0)\n' >heavy.py
  ends 255 '*rank 0*' cpu --import_once=heavy program.py
  nobody_left
}

# bats test_tags=slow
@test "a signal, or SIGKILL of the launcher, while the parent imports or the ranks run leaves nothing" {
  local hold='import os, time; open(os.path.join(os.environ["STUB_OUT"], "held"), "w").close(); time.sleep(600)'
  printf 'import heavy\nprint("rank")\n' >program.py
  printf '%s\n' "$hold" >heavy.py
  behind "${CPU[@]}" --import_once=heavy program.py
  eventually held
  end_by TERM 143 '*'
  rm "$STUB_OUT/held"
  behind "${CPU[@]}" --import_once=heavy program.py
  eventually held
  kill -KILL "$LAUNCHER"
  eventually nobody_left
  rm "$STUB_OUT/held"
  : >heavy.py
  printf 'import heavy\n%s\n' "$hold" >program.py
  behind "${CPU[@]}" --import_once=heavy program.py
  eventually held
  kill -KILL "$LAUNCHER"
  eventually nobody_left
}

# bats test_tags=slow
@test "a restart has a fresh parent" {
  printf 'import os, heavy\nos._exit(0 if "RESUME" in os.environ else 3)\n' >program.py
  printf 'import os\nprint("heavy imported by", os.getpid(), os.environ.get("RESUME"), flush=True)\n' >heavy.py
  ends 0 '*restart 1 of 1*' cpu --max_restarts 1 --import_once=heavy program.py
  grep -qx 'heavy imported by [0-9]* None' logs/latest/rank_0.log
  grep -qx 'heavy imported by [0-9]* 1' logs/latest/restart_1/rank_0.log
  [[ $(cut -d ' ' -f 4 logs/latest/rank_0.log) != "$(cut -d ' ' -f 4 logs/latest/restart_1/rank_0.log)" ]]
}

# bats test_tags=slow
@test "a hang shows where the program of each rank is, and nothing of ours" {
  printf 'import heavy, threading\ndef stuck():\n    threading.Event().wait()\nstuck()\n' >program.py
  ends 124 '*in wait*called from stuck (*program.py:3)*' cpu --hang_timeout 1 --import_once=heavy program.py
  [[ $(tail -n 1 logs/latest/rank_1.stack) == *'program.py", line 4 in <module>' ]] || fail "$(<logs/latest/rank_1.stack)"
}

@test "a variable that the program sets too late is named in the rank's log, once" {
  printf '%s\n' 'import os, mindspore' 'os.environ.update(GLOG_v=str(1), OTHER="1")' 'os.environ.update(GLOG_v=str(2))' \
    'os.environ.update(DEVICE_ID=os.environ["DEVICE_ID"])' >program.py
  ends 0 '*' cpu --import_once program.py
  [[ "$(<logs/latest/rank_1.log)" = 'note: the program sets GLOG_v, which was read at the import: leave out --import_once' ]] || fail "$(<logs/latest/rank_1.log)"
}

# bats test_tags=slow
@test "what is random differs from rank to rank" {
  python -c 'import numpy' || skip 'needs numpy'
  printf '%s\n' 'import multiprocessing, random, numpy' \
    'print(random.random(), numpy.random.random(), bytes(multiprocessing.current_process().authkey).hex())' >program.py
  ends 0 '*' cpu --import_once=multiprocessing,random,numpy program.py
  local number
  for number in 1 2 3; do
    [[ $(cut -d ' ' -f "$number" logs/latest/rank_0.log) != "$(cut -d ' ' -f "$number" logs/latest/rank_1.log)" ]]
  done
}

# bats test_tags=slow
@test "what cannot be meant is refused; what cannot be forked is said, and starts as ever" {
  printf 'import heavy\n' >program.py
  refused 2 '*--import_once=a-b: is not the name of a module*' cpu --import_once=a-b program.py
  refused 78 '*--import_once: nobody has tried it with NPUs*--import_once=force' bash "$SCRIPTS/launch.sh" --device_target Ascend --no_check -n 2 --import_once program.py
  ends 0 '*note: --import_once: program.py imports neither MindSpore nor NumPy*' cpu --import_once program.py
  ends 0 '*note: --import_once: /*/env is not this launcher'"'"'s Python*' cpu --import_once env
  ends 0 '*note: --import_once: the options -E -u of Python hide sitecustomize*' cpu --import_once=heavy "$PYTHON" -E -u program.py
  printf 'import os\nos.environ["GLOG_v"] = "2"\nimport mindspore\n' >program.py
  ends 0 '*note: --import_once: program.py sets GLOG_v, which is read at the import*' cpu --import_once program.py
}
