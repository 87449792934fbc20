#!/usr/bin/env bash
# Trains with one rank on device 0 of this machine.
#
# Usage: bash scripts/ascend1p.sh [options] CONFIG [-- trainer arguments]
#        bash scripts/ascend1p.sh [options] PROGRAM [arguments]
#
# Example:
#   bash scripts/ascend1p.sh configs/mnist/lenet5_mnist.yaml
#   bash scripts/ascend1p.sh --device_target CPU configs/mnist/lenet5_digits.yaml
#   bash scripts/ascend1p.sh CONFIG -- -o scheduler.num_epochs=3
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE is 1, RANK_ID 0. DEVICE_ID is 0, or the one of --devices. DEVICE_NUM is 1, unless you export another.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" local CONFIG device_target=Ascend devices='[0,1)' -- "$@"
