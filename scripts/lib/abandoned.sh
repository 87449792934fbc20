#!/usr/bin/env bash
# Replaces the launcher when its shell gives up: bash does so when it cannot start another process.
#
# Usage: bash abandoned.sh STATUS LAUNCHER GUARDIAN LIFELINE BUS [MINDER...]     (lib/launch.sh only)
#
# A shell that has given up may wait forever in the first command of its EXIT trap (bash 5.2 waits for the last process
# that it started). So the trap does nothing but exec this program. It closes the lifeline and waits until the guardian
# has stopped all ranks and ended. If no ranks run, GUARDIAN, LIFELINE and BUS are empty.
#
# The guardian needs a process more. Where none can be started it would give up, too. So the ranks' minders end first.
case ${LAUNCH_SHELL-} in # starts bash again, without what the environment tells it: see lib/own_shell.sh
  "$$/"*) ;;
  *)
    LAUNCH_SHELL=$$/${POSIXLY_CORRECT+posix}/${SHELLOPTS-}/${BASHOPTS-}${EXECIGNORE+/$EXECIGNORE}
    POSIXLY_CORRECT=${POSIXLY_CORRECT-}
    case ${BASH-} in */bash*) ;; *) BASH=bash ;; esac # with BASH_ARGV0, bash says that it is the login shell
    \export LAUNCH_SHELL && \unset EXECIGNORE BASH_ARGV0 && \exec "$BASH" -p -- "$0" "$@"
    ;;
esac
set -u
for minder in "${@:6}"; do # only a child of ours: the id of one that has ended may be somebody else's by now
  { read -r _ _ _ parent _ <"/proc/$minder/stat"; } 2>/dev/null || continue
  [[ $parent != "$$" ]] || kill -KILL "$minder"
done
unset LAUNCH_SHELL # the launcher's environment is ours already; own_shell.sh would start a process
status=$1 launcher=$2 guardian=$3 lifeline=$4 bus=$5
reason="has an internal error (status $status): please report it, with the lines above and the output of scripts/doctor.sh"
((status != 254)) || reason="cannot start more processes (see ulimit -u, and the container's limit of pids)"
printf '%s: the launcher %s%s\n' "${launcher//[![:graph:]]/?}" "$reason" "${guardian:+; stopping all that still runs}" >&2
[[ -n $guardian ]] || exit 78
exec {lifeline}>&-
while kill -CONT "$guardian" 2>/dev/null; do # not 0: it may have been stopped
  read -r -t 0.1 -u "$bus" _ || :            # a sleep without a new process
done
exit 78
