# shellcheck shell=bash
# The clock of a launch: the machine's uptime, which nobody sets while a job runs. No program is started for it.

# clock::now: hundredths of a second since the machine started, in REPLY.
clock::now() {
  local uptime _
  read -r uptime _ </proc/uptime
  REPLY=${uptime%.*}${uptime#*.}
}

# clock::reached TIME: whether it is that late.
clock::reached() {
  local REPLY
  clock::now
  ((REPLY >= $1))
}

# clock::sleep SECONDS
clock::sleep() {
  read -r -t "$1" _ <> <(:) || :
}
