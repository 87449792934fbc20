#!/usr/bin/env bash
# Replaces the launcher when its shell gives up: bash does so when it cannot start another process.
#
# Usage: bash abandoned.sh STATUS LAUNCHER GUARDIAN LIFELINE BUS     (lib/launch.sh only)
#
# A shell that has given up may wait forever in the first command of its EXIT trap (bash 5.2 waits for the last process
# that it started). So the trap does nothing but exec this program. It closes the lifeline and waits until the guardian
# has stopped all ranks and ended. If no ranks run, GUARDIAN, LIFELINE and BUS are empty.
set -u
status=$1 launcher=$2 guardian=$3 lifeline=$4 bus=$5
reason="has an internal error (status $status): please report it, with the lines above and the output of scripts/doctor.sh"
((status != 254)) || reason="cannot start more processes (see ulimit -u, and the container's limit of pids)"
printf '%s: the launcher %s%s\n' "${launcher//[![:graph:]]/?}" "$reason" "${guardian:+; stopping all ranks}" >&2
[[ -n $guardian ]] || exit 78
exec {lifeline}>&-
while kill -0 "$guardian" 2>/dev/null; do
  read -r -t 0.1 -u "$bus" _ || : # a sleep without a new process
done
exit 78
