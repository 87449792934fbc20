#!/usr/bin/env bash
# Trains with one process on this machine's processors: no cluster, no rank table.
#
# Usage: bash scripts/run_cpu.sh [options] CONFIG [-- trainer arguments]
#        bash scripts/run_cpu.sh [options] PROGRAM [its words]
#
# The script sets the config's system.distribute to False. DATA_PATH in the environment replaces its dataset_root.
#
# Example:
#   bash scripts/run_cpu.sh configs/mnist/lenet5_digits.yaml
#   DATA_PATH=MNIST_Data bash scripts/run_cpu.sh configs/mnist/dense_mnist.yaml
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

launch::main engine=local arguments=CONFIG without='device_target devices rank_table hccn_conf generation' device_target=CPU \
  devices='[0,1)' alone=1 -- "$@"
