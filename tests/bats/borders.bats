#!/usr/bin/env bats
# Text that we did not write, on its way into the plan, a command line, a rank or the terminal: every byte arrives as it
# was sent, or the launch is refused.

load helper

setup() {
  setup_world
}

# ---- what bash reads of the plan

# reads_plan: what plan.sh makes of the bytes in the file `plan`, of a Python that ends with $1: every word with its kind.
reads_plan() {
  cat >python <<'SH'
#!/usr/bin/env bash
cat plan
exit "$PLAN_ENDS"
SH
  chmod +x python
  PLAN_ENDS=$1 PYTHON=./python bash -c 'LAUNCH_ROOT=$0 LAUNCH_LIB=$0/scripts/lib
    for part in log python plan; do source "$LAUNCH_LIB/$part.sh"; done
    set -euo pipefail
    plan::make
    printf "run_dir\0%s\0" "$PLAN_RUN_DIR"
    printf "export\0%s\0" "${PLAN_EXPORTS[@]}"
    for i in "${!PLAN_RANKS[@]}"; do printf "rank\0%s\0" "${PLAN_RANKS[i]} ${PLAN_DEVICES[i]}"; done
    printf "host\0%s\0" "${PLAN_HOSTS[@]}"
    for name in "${!PLAN_ENGINE[@]}"; do printf "engine\0%s\0" "$name ${PLAN_ENGINE[$name]}"; done
    printf "trainer\0%s\0" "${PLAN_TRAINER[@]}"
    printf "scheduler\0%s\0" "${PLAN_SCHEDULER[@]}"
    printf "setup\0%s\0" "${PLAN_SETUP[@]}"' "$PROJECT"
}

good_plan() {
  printf '%s\0' run_dir /runs/1 export A=1 rank '0 4' host n1 engine 'version 4.1' trainer python scheduler python setup cp end 8
}

@test "every byte, in every kind of word: bash has it as Python sent it, or refuses it" {
  python - "$PROJECT" <<'PY'
import sys

sys.path.insert(0, sys.argv[1])
from tools.launch import protocol

every = b"".join(bytes([n]) for n in range(1, 256)) + b"".join(b"\xd6" + bytes([n]) for n in range(1, 256))
odd = "世界\n\t'\"$(id)\x1b[2J" + every.decode("utf-8", "surrogateescape")
pairs = [("run_dir", odd), ("export", "A=" + odd), ("export", "B="), ("rank", "0 4"), ("rank", "65535 15")]
pairs += [("host", "me@n1"), ("host", "世界"), ("engine", "hosts " + odd), ("trainer", ""), ("trainer", odd)]
pairs += [("trainer", "a%n" % n if 0 else chr(n)) for n in range(1, 128)]
pairs += [("trainer", bytes([n]).decode("utf-8", "surrogateescape")) for n in range(128, 256)]
pairs += [("scheduler", odd), ("setup", odd)]
text = b"".join(protocol._pair(*pair) for pair in pairs)
open("sent", "wb").write(text)
open("plan", "wb").write(text + protocol._pair("end", str(len(pairs))))
PY
  for locale in C C.UTF-8; do
    LC_ALL=$locale reads_plan 0 >read
    cmp sent read
  done
}

@test "a pair that does not belong in a plan is refused" {
  local pair
  good_plan >plan
  reads_plan 0 >/dev/null
  for pair in 'rank|0' 'rank|0 4 5' 'rank|0 x' 'rank|a[$(id)] 1' 'host|' 'host|-oProxyCommand=x' 'host|a b' $'host|a\eb' \
    'export|A' 'export|1=2' 'export|A-B=2' 'engine|version' 'engine|a[$(id)] 1' 'run_dir|' 'word|x' '|'; do
    { printf '%s\0' "${pair%%|*}" "${pair#*|}" && good_plan; } | sed 's/\x00end\x008\x00$/\x00end\x009\x00/' >plan
    ends 78 '*: the plan is damaged at: *; does this Python print something*' reads_plan 0
  done
}

@test "a plan that was cut is refused, wherever it was cut" {
  local size cut
  good_plan >whole
  size=$(stat -c %s whole)
  for ((cut = 0; cut < size; cut++)); do
    head -c "$cut" whole >plan
    ends 78 '*the plan*' reads_plan 0
  done
}

@test "a Python that was killed in the middle of the plan is told as that" {
  good_plan | head -c 30 >plan
  ends 78 "*the plan's process could not be started, or was ended*" reads_plan 137
}

@test "a Python that prints at its start cannot add words to the plan" {
  { echo 'hello' && good_plan; } >plan
  ends 78 '*the plan is damaged at: hello\\nrun_dir /runs/1; *' reads_plan 0
}

# ---- a launch

# odd_words: arguments that have every byte but 0, alone and after others, one a line of `words` with NUL at its end.
odd_words() {
  python - <<'PY'
import sys

words = [bytes([n]) for n in range(1, 256)] + [b"\xd6" + bytes([n]) + b" x" for n in range(1, 256)]
words += ["世界".encode(), b"$(id) `id` ${HOME} \\ ' \" !! *", b"", b"-x", b"--", b"a\n\nb\n", b"\xe4\xb8", b"{a,b}~#"]
open("words", "wb").write(b"".join(word + b"\0" for word in words))
PY
  WORDS=()
  while LC_ALL=C IFS= read -r -d '' word; do
    WORDS+=("$word")
  done <words
}

# has_words NAME: the rank NAME has the words as its last arguments, byte for byte, and $ODD in its environment.
has_words() {
  recorded "$1" 'None if (lambda words, odd: r["argv"][-len(words):] == words and r["env"]["ODD"] == odd)(
    open("words", encoding="utf-8", errors="surrogateescape", newline="").read().split("\0")[:-1],
    __import__("os").environ["ODD"]) else r["argv"]' >differs
  [[ "$(<differs)" == None ]] || fail "$(<differs)"
}

@test "arguments and environment arrive in the rank byte for byte, and the same from the text of --dry_run" {
  odd_words
  ODD=$(
    tr -d '\0' <words
    printf x
  )
  export ODD
  printf 'system:\n  distribute: False\n' >config.yaml # no scheduler
  mkdir $'\xff\n\e[2J 世界 \'"$x'
  mv config.yaml hccn.conf words $'\xff\n\e[2J 世界 \'"$x'
  cd $'\xff\n\e[2J 世界 \'"$x' || return
  for locale in C C.UTF-8; do
    ends 0 '*exit 0; logs and launch.json are in logs/*' env LC_ALL=$locale \
      bash "$SCRIPTS/ascend1p.sh" --device_target CPU --train_script "$FIXTURES/stub_trainer.py" "${HCCN[@]}" config.yaml -- "${WORDS[@]}"
    has_words rank_0
    rm "$STUB_OUT/rank_0.json"
    LC_ALL=$locale launch ascend1p.sh --dry_run config.yaml -- "${WORDS[@]}" >plan.sh 2>/dev/null
    ! LC_ALL=C grep -aqP '[\x00-\x08\x0b-\x1f\x7f]' plan.sh || fail "control characters in the plan"
    timeout 60 bash plan.sh
    has_words rank_0
    rm "$STUB_OUT/rank_0.json"
  done
}
