#!/usr/bin/env bats
# Text that we did not write, on its way into a command line, a rank or the terminal: every byte arrives as it was sent,
# or the launch is refused.

load ../helper

setup() {
  setup_world
}

# ---- a launch

# odd_words: arguments that have every byte but 0, alone and after others, one a line of `words` with NUL at its end.
odd_words() {
  python - <<'PY'
import sys

words = [bytes([n]) for n in range(1, 256)] + [b"\xd6" + bytes([n]) + b" x" for n in range(1, 256)]
words += ["世界".encode(), b"$(id) `id` ${HOME} \\ ' \" !! *", b"", b"-x", b"--", b"a\n\nb\n", b"\xe4\xb8", b"{a,b}~#", b"~", b"~root/x y", b"a=~:~/x", b"a=~\\n~"]
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

# bats test_tags=thorough
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
    ends 0 '*exit 0; logs and launch.json are in logs/*' env LC_ALL="$locale" \
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

# ---- names that become words of commands

# dashes: files whose names begin with a dash, and the options that name them.
dashes() {
  cp "$FIXTURES/stub_trainer.py" ./-t.py
  mv hccn.conf ./-h.conf
  DASHES=(--device_target CPU --train_script=-t.py --log_dir=-logs)
}

# bats test_tags=slow
@test "files whose names begin with a dash are files, with our own shell" {
  dashes
  mkdir data
  mv config.yaml ./-c.yaml
  ends 0 '*' bash "$SCRIPTS/run_dataset_slice.sh" "${DASHES[@]}" --hccn_conf=-h.conf --config=-c.yaml data 1
  [[ "$(recorded rank_0 'r["argv"]')" == "['--config', './-c.yaml']" ]] || fail "$(recorded rank_0 'r["argv"]')"
  [[ -d ./-logs/latest ]]
}

# bats test_tags=thorough
@test "a rank table whose name begins with a dash is a file, as an option and in the environment" {
  dashes
  ends 0 '*' bash "$SCRIPTS/ascend2p.sh" "${DASHES[@]}" --hccn_conf=-h.conf config.yaml
  cp ./-logs/latest/hccl_2p_01_127.0.0.1.json ./-r.json
  ends 0 '*' bash "$SCRIPTS/ascend2p.sh" "${DASHES[@]}" --rank_table=-r.json config.yaml
  ends 0 '*' env RANK_TABLE_FILE=-r.json bash "$SCRIPTS/ascend2p.sh" "${DASHES[@]}" config.yaml
  [[ "$(recorded rank_1 'r["env"]["RANK_TABLE_FILE"]')" == "$PWD/-r.json" ]]
}

# bats test_tags=slow
@test "a trainer whose name begins with a dash is a file, with mpirun and msrun" {
  need mpirun
  dashes
  ends 0 '*' bash "$SCRIPTS/run_mpirun.sh" "${DASHES[@]}" -n 2 config.yaml
  ranks_up 0 1
  ends 0 '*' bash "$SCRIPTS/run_msrun.sh" "${DASHES[@]}" --worker_num 1 --dry_run config.yaml
  [[ $output == *" -u ./-t.py --config config.yaml"* ]] || fail "$output"
}

@test "a host that begins with a dash is no option of ssh: its line of the hostfile is refused" {
  HCCN=()
  printf 'localhost slots=1\n-Fevil@10.0.0.9 slots=1\n' >hosts
  refused 78 '*HOSTFILE hosts:2: -Fevil@10.0.0.9 is neither *' launch run_mpirun_2.sh --device_target CPU hosts
  refused 2 "*HOSTS: -Fevil@10.0.0.9 is neither *" launch run_mpirun_1.sh localhost:1,-Fevil@10.0.0.9:1
}

# ---- a rank table

# bats test_tags=slow
@test "a NUL in a server's name starts no program, and control characters are refused with their line" {
  local -r own=127.0.0.1
  HCCN=()
  printf '#!/bin/sh\ntouch %s/evil\n' "$STUB_OUT" >"$BATS_TEST_TMPDIR/evil"
  chmod +x "$BATS_TEST_TMPDIR/evil"
  mkdir data
  python - "$own" "$BATS_TEST_TMPDIR/evil" <<'PY'
import json, sys

for name, text in (("nul", f"\0trainer\0{sys.argv[2]}"), ("esc", "\x1b]0;x\x07\x1b[2J"), ("bidi", "\u202e"), ("c1", "\x9b2J")):
    devices = [[{"device_id": "0", "device_ip": f"192.168.100.{n}", "rank_id": str(n)}] for n in range(2)]
    ids = ("10.0.0.9" + text, sys.argv[1])
    servers = [{"server_id": i, "device": d, "host_nic_ip": "reserve"} for i, d in zip(ids, devices)]
    table = {"version": "1.0", "server_count": "2", "server_list": servers, "status": "completed"}
    json.dump(table, open(name + ".json", "w"), indent=1, ensure_ascii=name != "c1")
PY
  for name in nul esc bidi c1; do
    refused 78 "*$name.json:6: /server_list/0/server_id: \"10.0.0.9* has the character U+*\[unprintable-text\]*" \
      launch run_cluster.sh --config config.yaml data "$name.json" 2 1
    [[ $stderr != *[$'\x01'-$'\x08'$'\x0b'-$'\x1f']* && $stderr != *$'\xc2\x9b'* && $stderr != *$'\u202e'* ]]
  done
}
