#!/usr/bin/env bash
# Takes the launcher's place when its shell gives up, as bash does when it cannot start one more process.
#
# Usage: bash abandoned.sh LAUNCHER GUARDIAN LIFELINE BUS     (lib/supervise.sh only)
#
# A shell that has given up may wait for ever in the first command of its EXIT trap (bash 5.2, for the
# last process that it did start). So the trap does nothing but become this program: it lets go of the
# lifeline, upon which the guardian ends all ranks, and waits until the guardian has ended.
set -u
launcher=$1 guardian=$2 lifeline=$3 bus=$4
printf '%s: the launcher can start no more processes (see ulimit -u, and the limit of pids of the container); stopping all ranks\n' "$launcher" >&2
exec {lifeline}>&-
while kill -0 "$guardian" 2>/dev/null; do
  read -r -t 0.1 -u "$bus" _ || : # a sleep that starts no program
done
exit 78
