#!/usr/bin/env bash
# Prints one page about this machine, to read before a launch and to paste into a bug report.
#
# Usage: bash scripts/doctor.sh [options]
#
# Each line is ok, absent (not here, and not needed), unknown, warning or problem. The line below a problem says
# what to do. docs/doctor.md explains every line. The script changes nothing and sends nothing.
#
# Example:
#   bash scripts/doctor.sh
#   bash scripts/doctor.sh --format json >machine.json
case ${LAUNCH_SHELL-} in # starts bash again, without what the environment tells it: see lib/own_shell.sh
  "$$/"*) ;;
  *)
    LAUNCH_SHELL=$$/${POSIXLY_CORRECT+posix}/${SHELLOPTS-}/${BASHOPTS-}${EXECIGNORE+/$EXECIGNORE}
    POSIXLY_CORRECT=${POSIXLY_CORRECT-}
    case ${BASH-} in */bash*) ;; *) BASH=bash ;; esac # with BASH_ARGV0, bash says that it is the login shell
    \export LAUNCH_SHELL && \unset EXECIGNORE BASH_ARGV0 && \exec "$BASH" -p -- "$0" "$@"
    ;;
esac
set -euo pipefail
LAUNCH_SCRIPT=$(readlink -f -- "$0")
if [[ ! -r ${LAUNCH_SCRIPT%/*}/lib/launch.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "${LAUNCH_SCRIPT%/*}/lib/launch.sh" >&2
  exit 78
fi
# shellcheck source=scripts/lib/doctor.sh
source "${LAUNCH_SCRIPT%/*}/lib/doctor.sh"

doctor::main "$@"
