#!/usr/bin/env bash
# Trains with MindSpore's own launcher, msrun: no rank table; the ranks find each other through MindSpore's scheduler.
#
# Usage: bash scripts/run_msrun.sh [options] CONFIG [-- trainer arguments]
#        bash scripts/run_msrun.sh [options] PROGRAM [its words]
#
# With several hosts, type the command on each of them, with that host's --node_rank.
#
# Example:
#   bash scripts/run_msrun.sh --worker_num 8 configs/mnist/lenet5_mnist.yaml
#   bash scripts/run_msrun.sh --worker_num 2 --device_target CPU configs/mnist/lenet5_digits.yaml
#   bash scripts/run_msrun.sh --worker_num 16 --local_worker_num 8 --master_addr 10.0.0.1 --node_rank 1 CONFIG
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

launch::main engine=msrun arguments=CONFIG options='worker_num local_worker_num master_addr master_port node_rank' \
  without='rank_table hccn_conf generation' device_target=Ascend -- "$@"
