#!/usr/bin/env bash
# Trains with MindSpore's launcher msrun: without a rank table, the ranks find each other through MindSpore's scheduler.
#
# Usage: bash scripts/run_msrun.sh [options] CONFIG [-- trainer arguments]
#        bash scripts/run_msrun.sh [options] PROGRAM [arguments]
#
# With several hosts, type the command on each host, with its own --node_rank.
#
# Example:
#   bash scripts/run_msrun.sh --worker_num 8 configs/mnist/lenet5_mnist.yaml
#   bash scripts/run_msrun.sh --worker_num 2 --device_target CPU configs/mnist/lenet5_digits.yaml
#   bash scripts/run_msrun.sh --worker_num 16 --local_worker_num 8 --master_addr 10.0.0.1 --node_rank 1 CONFIG
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE is --worker_num; DEVICE_ID is the rank's number on its host, or that of --devices.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" msrun CONFIG device_target=Ascend -- "$@"
