# shellcheck shell=bash
# The clock of a launch: the machine's uptime, which nobody can set while a job runs. Reading it starts no program.

# clock::now: hundredths of a second since the machine started, in REPLY.
clock::now() {
  local uptime _
  read -r uptime _ </proc/uptime
  REPLY=${uptime%.*}${uptime#*.}
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
