#!/usr/bin/env bash
# Ends a job's processes if its launcher was killed (SIGKILL) and could not do so itself.
#
# Usage: bash guardian.sh GRACE BUS <lifeline
#
# Only lib/supervise.sh starts it. It reads "job NAME", "start PGID", "gone PGID", "helper PID" (a process that ends with the
# launcher unless somebody has stopped it), "stopping" and "running" from the launcher (see bus.sh). The end of the input
# means that the launcher is dead, because after a normal end the launcher kills the guardian. If the launcher's whole
# group was stopped before it was killed, a stopped process of it may hold the input open. So the guardian also looks.
#
# While the job is stopping, the guardian writes "wake" to the BUS once a second. In bash 4.4 to 5.1 a `read -t` of the
# launcher may wait forever if a child of it ends in the moment of the timeout. The guardian has no such children.
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
# The launcher's environment is ours already. own_shell.sh would start a process, for which there may be no room: the
# ranks start at the same time.
unset LAUNCH_SHELL
readonly lib=${0%/*} grace=$1 bus=$2
# shellcheck source=scripts/lib/clock.sh
source "$lib/clock.sh"
# shellcheck source=scripts/lib/bus.sh
source "$lib/bus.sh"
# shellcheck source=scripts/lib/processes.sh
source "$lib/processes.sh"
readonly look=10
declare -A groups=()
job='' helper='' patience=$look status=0

trap '' INT TERM HUP QUIT # nothing but the lifeline ends the guardian

while ((status != 1)); do
  status=0
  bus::next 0 "$patience" || status=$?
  if ((status > 128)); then
    processes::is_child "$$" "$PPID" || break
    ((patience == look)) || bus::say "$bus" wake
    continue
  fi
  value=${REPLY#* }
  case ${REPLY%% *} in
    job) job=$value ;; # not an argument, because `pkill -f` with the script's name would match the guardian, too
    start) groups[$value]=1 ;;
    gone) unset "groups[$value]" ;;
    helper) helper=$value ;;
    stopping) patience=1 ;;
    running) patience=$look ;;
  esac
done

signal_all() {
  local group
  for group in ${groups[@]+"${!groups[@]}"}; do
    processes::signal "$1" "$group"
  done
}

[[ -z $helper ]] || kill -CONT "$helper" 2>/dev/null
kill -CONT -- "-$PPID" 2>/dev/null # the group that it led, if any; in a session of its own the kernel does not wake it
signal_all TERM
for ((tick = 0; tick < grace * 20; tick++)); do
  processes::marked "$job"
  [[ -n $REPLY ]] || exit 0
  clock::sleep 0.05
done
signal_all KILL
processes::sweep "$job"
