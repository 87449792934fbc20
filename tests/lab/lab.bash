# shellcheck shell=bash
# For bats files: a lab for one test.

LAB_SH=$PROJECT/tests/lab/lab.sh

# lab_up N: N hosts that go with this test; the test is skipped where there can be none. Where there
# must be, LAB_REQUIRED makes that a failure: a suite that skips everything looks as green as one that
# passes.
lab_up() {
  local why
  if LAB=$("$LAB_SH" up "$1" "$$" 2>"$BATS_TEST_TMPDIR/lab.err"); then
    export LAB
    return 0
  fi
  why=$(<"$BATS_TEST_TMPDIR/lab.err")
  [[ -z ${LAB_REQUIRED-} ]] || fail "$why"
  skip "${why#lab.sh: }"
}

# on HOST COMMAND...: COMMAND there, ended after two minutes whatever happens.
on() {
  timeout -k 5 120 "$LAB_SH" run "$@"
}

lab_down() {
  [[ -z ${LAB-} || ! -e $LAB ]] || "$LAB_SH" down
}
