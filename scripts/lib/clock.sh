# shellcheck shell=bash
# The clock of a launch: the machine's uptime, which nobody sets while a job runs.

# clock::now: hundredths of a second since the machine started, in REPLY. No program is started for it.
clock::now() {
  local uptime _
  read -r uptime _ </proc/uptime
  REPLY=${uptime%.*}${uptime#*.}
}
