#!/usr/bin/env bash
# Ends a job's processes when its launcher was killed without a chance to do so itself.
#
# Usage: bash guardian.sh JOB GRACE <lifeline
#
# Started by lib/supervise.sh only. Reads "start PGID" and "gone PGID" from the launcher; the end of
# the input means that the launcher is dead, for it kills the guardian when all is in order.
set -u
readonly job=$1 grace=$2
declare -A groups=()

trap '' INT TERM HUP QUIT # nothing but the lifeline ends the guardian

while read -r word group; do
  case $word in
    start) groups[$group]=1 ;;
    gone) unset "groups[$group]" ;;
  esac
done

signal_all() {
  local group
  for group in ${groups[@]+"${!groups[@]}"}; do
    kill -s "$1" -- "-$group" 2>/dev/null
  done
}

# Processes of the job that still run, by the mark in their environment; zombies have none.
left() {
  grep -lszxF -- "LAUNCH_JOB=$job" /proc/[0-9]*/environ
}

signal_all TERM
signal_all CONT
for ((tick = 0; tick < grace * 20; tick++)); do
  [[ -n $(left) ]] || exit 0
  read -r -t 0.05 <> <(:) # a sleep that starts no program
done
signal_all KILL
while IFS= read -r file; do
  pid=${file#/proc/}
  kill -KILL "${pid%%/*}" 2>/dev/null
done < <(left)
