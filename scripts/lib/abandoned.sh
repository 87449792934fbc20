#!/usr/bin/env bash
# Takes the launcher's place when its shell gives up, as bash does when it cannot start one more process.
#
# Usage: bash abandoned.sh STATUS LAUNCHER GUARDIAN LIFELINE BUS     (lib/launch.sh only)
#
# A shell that has given up may wait for ever in the first command of its EXIT trap (bash 5.2, for the
# last process that it did start). So the trap does nothing but become this program: it lets go of the
# lifeline, upon which the guardian ends all ranks, and waits until the guardian has ended. Where no ranks
# run, GUARDIAN and what follows is empty.
set -u
status=$1 launcher=$2 guardian=$3 lifeline=$4 bus=$5
reason="failed inside (status $status): please report it, with what is above and the page of scripts/doctor.sh"
((status != 254)) || reason='can start no more processes (see ulimit -u, and the limit of pids of the container)'
printf '%s: the launcher %s%s\n' "$launcher" "$reason" "${guardian:+; stopping all ranks}" >&2
[[ -n $guardian ]] || exit 78
exec {lifeline}>&-
while kill -0 "$guardian" 2>/dev/null; do
  read -r -t 0.1 -u "$bus" _ || : # a sleep that starts no program
done
exit 78
