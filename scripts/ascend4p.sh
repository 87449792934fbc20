#!/usr/bin/env bash
# Trains with 4 ranks, one on each of devices 4 to 7 of this machine.
#
# Usage: bash scripts/ascend4p.sh [options] CONFIG [-- trainer arguments]
#        bash scripts/ascend4p.sh [options] PROGRAM [its words]
#
# Example:
#   bash scripts/ascend4p.sh configs/mnist/lenet5_mnist.yaml
#   bash scripts/ascend4p.sh --device_target CPU configs/mnist/lenet5_digits.yaml
#   bash scripts/ascend4p.sh CONFIG -- -o scheduler.num_epochs=3
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
# shellcheck source=scripts/lib/launch.sh
source "${LAUNCH_SCRIPT%/*}/lib/launch.sh"

launch::main engine=local arguments=CONFIG device_target=Ascend device_num=8 devices='[4,8)' -- "$@"
