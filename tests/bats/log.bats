#!/usr/bin/env bats
# scripts/lib/log.sh: what is printed cannot command a terminal, and stays readable.

load helper

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  # shellcheck source=scripts/lib/log.sh
  source "$SCRIPTS/lib/log.sh"
}

# shows TEXT SHOWN: in each locale
shows() {
  local locale
  for locale in C C.UTF-8 xx_YY.UTF-8; do
    run --separate-stderr env LC_ALL="$locale" bash -c 'source "$0"; log::harmless "$1"; printf "%s" "$REPLY"' "$SCRIPTS/lib/log.sh" "$1"
    [[ $output == "$2" ]] || fail "$locale: $output"
  done
}

@test "text stays as it is, in every locale" { shows $'tab\t, \\x1b, 世界 ü 🌍' $'tab\t, \\x1b, 世界 ü 🌍'; }
@test "the two ends of a line" { shows $'a\nb\r' 'a\nb\r'; }
@test "a sequence for the terminal" { shows $'\e]0;x\a\e[2J' '\x1b]0;x\x07\x1b[2J'; }
@test "the delete character, and the first control character" { shows $'\177\001\001a' '\x7f\x01\x01a'; }
@test "C1 control characters, in UTF-8 and as bytes" { shows $'\302\233 \233 世' '\xc2\x9b \x9b 世'; }
@test "a turned direction of text, and the separator of lines" { shows $'a\342\200\256b\342\201\246\342\200\250' 'a\xe2\x80\xaeb\xe2\x81\xa6\xe2\x80\xa8'; }
@test "bytes that are not UTF-8" { shows $'\344\270 \300\257 \355\240\200 \364\220\200\200' '\xe4\xb8 \xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80'; }
@test "a character that is cut in two pieces of work" { shows "$(printf '%0199d世界%0397d世\e' 0 0)" "$(printf '%0199d世界%0397d世\\x1b' 0 0)"; }

@test "every byte, alone and after others, becomes what prints" {
  python - <<'PY'
import random

random.seed(14)
starts = [bytes([byte]) for byte in range(1, 256)]
parts = [*starts, *("世界\u202e\u2028\u2069\x9b\x85ü".encode()[i:j] for i in range(8) for j in range(i, 20))]
with open("bytes", "wb") as file:
    file.write(b" ".join(starts) + b"".join(random.choices(parts, k=3000)) + b"\0")
PY
  for locale in C C.UTF-8; do
    LC_ALL=$locale bash -c 'source "$0"; LC_ALL=C read -r -d "" text; log::harmless "$text"; printf "%s" "$REPLY"' \
      "$SCRIPTS/lib/log.sh" <bytes >shown
    python - <<'PY'
import re

def visible(match):
    byte = match.group()
    return {b"\n": b"\\n", b"\r": b"\\r"}.get(byte, b"\\x%02x" % ord(byte))

text = open("bytes", "rb").read()[:-1]
dangerous = "[\0-\x08\x0a-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
pieces = []
for character in text.decode("utf-8", "surrogateescape"):
    piece = character.encode("utf-8", "surrogateescape")
    if "\udc80" <= character <= "\udcff" or re.match(dangerous, character):
        piece = re.sub(b"(?s).", visible, piece)
    pieces.append(piece)
shown = open("shown", "rb").read()
assert shown == b"".join(pieces), (shown, b"".join(pieces))
PY
  done
}

@test "log::say prints one harmless line, with the script's own name in it" {
  LOG_NAME=$'a\e[2Jb.sh'
  run --separate-stderr log::say $'the host\n' $'\e]0;x\a'
  [[ $stderr == 'a\x1b[2Jb.sh: the host\n \x1b]0;x\x07' ]] || fail "$stderr"
}
