#!/usr/bin/env bats
# What the other tests lean on.

load ../helper

# bats test_tags=slow
@test "what a test has left behind is ended, and nothing of another test or of another run of them" {
  for mark in "$BATS_TEST_TMPDIR" "${BATS_TEST_TMPDIR}0" /another/run/1; do
    TEST_MARK=$mark sleep 60 3>&- &
    eventually grep -qszxF "TEST_MARK=$mark" "/proc/$!/environ"
    pids+=("$!")
  done
  [[ "$(left_over)" == "/proc/${pids[0]}/environ" ]]
  end_left_over
  eventually gone "${pids[0]}"
  kill "${pids[1]}" "${pids[2]}"
}

# bats test_tags=slow
@test "all_refused fails where a launch is refused for another reason, or not at all" {
  setup_world
  refused_later 2 '*unknown option --a*' launch ascend1p.sh --b config.yaml
  run ! all_refused
  [[ $output == *'unknown option --b'* ]]
  LATER=()
  rm -r "$BATS_TEST_TMPDIR/later"
  refused_later 0 '*' launch ascend1p.sh config.yaml
  run ! all_refused
  [[ $output == *'not one line'* ]]
}
