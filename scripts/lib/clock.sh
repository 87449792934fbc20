# shellcheck shell=bash
# The clock of a launch: the machine's uptime, which nobody can set while a job runs. Reading it starts no program.

CLOCK_READ=0    # what was read last, in hundredths of a second
CLOCK_READ_AT=0 # bash's SECONDS at that time

# clock::now: hundredths of a second since the machine started, in REPLY. While the uptime cannot be read, bash's own
# SECONDS go on from what was read last. Those follow the date, so a step of the date is a step of the clock then.
clock::now() {
  local text=''
  { read -r text _ </proc/uptime; } 2>/dev/null || :
  if clock::hundredths "$text"; then
    CLOCK_READ=$REPLY CLOCK_READ_AT=$SECONDS
  else
    REPLY=$((CLOCK_READ + (SECONDS - CLOCK_READ_AT) * 100))
  fi
}

# clock::hundredths SECONDS: SECONDS, such as 12.5, as hundredths in REPLY; fails if that is not such a number. The 10# is
# for a machine that started less than a second ago: without it the shell takes the 078 of 0.78 for an octal number.
clock::hundredths() {
  local -r whole=${1%%.*}
  local fraction=${1#"$whole"}
  fraction=${fraction#.}00
  [[ -n $whole && $whole$fraction != *[!0-9]* ]] || return 1
  REPLY=$((10#$whole * 100 + 10#${fraction:0:2}))
}

# clock::reached TIME: whether TIME has come.
clock::reached() {
  local REPLY
  clock::now
  ((REPLY >= $1))
}

# clock::sleep SECONDS: without a new process, unlike sleep(1).
clock::sleep() {
  read -r -t "$1" _ <> <(:) || :
}
