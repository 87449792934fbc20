#!/usr/bin/env bats
# Lines between processes: none is lost, none is torn, whenever they come; so an agent tells its trainer's true end.

# bats file_tags=thorough
load helper

@test "no line is lost when it comes in the moment when the time is up" {
  run -0 bash -uc '
    source "$1/lib/bus.sh"
    pair() {
      exec {bus}<> <(:)
      for ((i = 0; i < 1500; i++)); do
        bus::say "$bus" exit "$i" 143
        for ((j = RANDOM % 600; j > 0; j--)); do :; done
      done &
      for ((i = 0; i < 1500; i++)); do
        until bus::next "$bus" 0.001; do :; done
        [[ $REPLY == "exit $i 143" ]] || printf "not exit %d 143: %s\n" "$i" "$REPLY"
      done
    }
    for one in 1 2 3 4; do # more than there are cores, for it happens to those that wait for a core
      pair &
    done
    wait' - "$SCRIPTS"
  [[ -z $output ]] || fail "${lines[0]}" "and ${#lines[@]} lines in all"
}

@test "a line in two parts is one; one that lacks its end is no part of the next" {
  run -0 bash -uc '
    source "$1/lib/bus.sh"
    exec {bus}<> <(:)
    bus::next "$bus" 0.05 || printf "%d|" $(($? > 128))
    printf ".exit ra" >&"$bus"
    { read -r -t 0.2 <> <(:); printf "nk_3 137\nan engine says\n.signal TERM\n no\n"; printf "\n.stack 3 in  f (/*/a b.py:3)\n"; } >&"$bus" &
    for line in 1 2 3 4 5 6; do
      until bus::next "$bus" 0.1; do :; done
      printf "%s|" "$REPLY"
    done
    bus::empty "$bus" && bus::next "$bus" 0.05 || printf "%d|" $(($? > 128))
    exec {bus}< <(:)
    bus::next "$bus" 20 || printf "%d|" "$?"' - "$SCRIPTS"
  [[ $output == '1|exit rank_3 137|an engine says|signal TERM| no||stack 3 in  f (/*/a b.py:3)|1|1|' ]] || fail "$output"
}

@test "a signal that comes while it waits: what its handler says on the same pipe comes at once, and the next line, too" {
  run -0 bash -uc '
    source "$1/lib/bus.sh"
    exec {bus}<> <(:)
    trap "bus::say $bus signal USR1" USR1
    { read -r -t 0.2 <> <(:); kill -USR1 $$; read -r -t 0.2 <> <(:); bus::say "$bus" exit 0 0; } &
    for line in 1 2; do
      SECONDS=0
      until bus::next "$bus" 20; do :; done
      printf "%s, %d|" "$REPLY" $((SECONDS > 10))
    done' - "$SCRIPTS"
  [[ $output == 'signal USR1, 0|exit 0 0, 0|' ]] || fail "$output"
}

# at_once SIGNAL: SIGNAL comes to a shell in bus::next in the moment when the time is up; its handler says so on the bus
at_once() {
  set -m # else the shell ignores INT
  # shellcheck disable=SC2016 # for the inner shell
  bash -uc '
    source "$1/lib/bus.sh"
    exec {bus}<> <(:)
    trap "bus::say $bus signal" "$2"
    : >ready
    for ((i = 0; i < 40; i++)); do
      ! bus::next "$bus" 0.5 || { printf "%s" "$REPLY" >got && break; }
    done' - "$SCRIPTS" "$1" 3>&- &
  set +m
  eventually test -e ready
  kill -STOP "$!"
  sleep 0.6 # longer than the wait
  kill -s "$1" "$!"
  kill -CONT "$!"
  wait "$!"
  [[ "$(<got)" == signal ]]
}

@test "SIGTERM that comes in the moment when the time is up is not lost" {
  cd "$BATS_TEST_TMPDIR"
  at_once TERM
}

@test "SIGINT that comes in the moment when the time is up is not lost" {
  need_whole_signals
  cd "$BATS_TEST_TMPDIR"
  at_once INT
}

# agent FILE: an agent of mpirun's with nothing to train; what it tells goes to FILE.
agent() {
  LAUNCH_ENGINE=mpirun OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=0 RANK_SIZE=1 LAUNCH_DEVICES=0 LAUNCH_EXPORTS='RANK_SIZE LOG_DIR' \
    LAUNCH_SIZES=1x1 LAUNCH_BIND='' LAUNCH_FOLDER=$PWD LAUNCH_HOST=$HOSTNAME LOG_DIR=$PWD LAUNCH_LOGS=$PWD LAUNCH_PLOGS='' LAUNCH_UMASK=0022 LAUNCH_HANG=0 LAUNCH_GRACE=5 \
    LAUNCH_SECRET=tell LAUNCH_JOB=$TEST_MARK exec bash "$SCRIPTS/lib/rank_agent.sh" sleep 60 >"$1"
}

# heeds AGENT: whether it has ended, as it was told; the launcher, too, gives an order more than once.
heeds() {
  ! kill -URG "$1" 2>/dev/null || gone "$1"
}

@test "a trainer's end and an order in the same moment: the agent tells the trainer's own status" {
  setup_world
  touch launch.json
  local i said
  for ((i = 0; i < 20; i++)); do
    said=$BATS_TEST_TMPDIR/said.$i
    set -m
    (agent "$said") 3>&- &
    set +m
    eventually grep -q ' start 0 ' "$said"
    kill -TERM "$(awk '/ start 0 / { print $4 }' "$said")"
    eventually heeds "$!"
    wait "$!" || fail "the agent ended with $?: $(<"$said")"
    [[ "$(tail -n 1 "$said")" == '.tell exit 0 143' ]] || fail "in run $i: $(<"$said")"
  done
}
