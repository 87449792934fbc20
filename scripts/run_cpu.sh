#!/usr/bin/env bash
# Trains with one process on this machine's processors: no cluster, no rank table.
#
# Usage: bash scripts/run_cpu.sh [options] CONFIG [-- trainer arguments]
#        bash scripts/run_cpu.sh [options] PROGRAM [arguments]
#
# The script sets system.distribute in the config to False. DATA_PATH in the environment replaces the config's
# dataset_root.
#
# Example:
#   bash scripts/run_cpu.sh configs/mnist/lenet5_digits.yaml
#   DATA_PATH=MNIST_Data bash scripts/run_cpu.sh configs/mnist/dense_mnist.yaml
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE is 1, RANK_ID and DEVICE_ID are 0. DATA_PATH is yours, if you export it.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" local CONFIG device_target=CPU devices='[0,1)' alone=1 \
  without='device_target devices exclude rank_table hccn_conf generation' -- "$@"
