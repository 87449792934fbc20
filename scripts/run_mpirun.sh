#!/usr/bin/env bash
# Trains with N ranks on devices 0 to N-1 of this machine; Open MPI starts the ranks.
#
# Usage: bash scripts/run_mpirun.sh [options] CONFIG [-- trainer arguments]
#        bash scripts/run_mpirun.sh [options] PROGRAM [arguments]
#
# The script also takes mpirun's options, such as -mca, -x and -H: see docs/mpirun.md.
#
# Example:
#   bash scripts/run_mpirun.sh -n 8 configs/mnist/lenet5_mnist.yaml
#   bash scripts/run_mpirun.sh -n 2 --device_target CPU configs/mnist/lenet5_digits.yaml
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE is -n, else the slots of the hosts, else 8; DEVICE_ID is the rank's number on its host, or that of --devices.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" mpirun CONFIG options=no_sink device_target=Ascend -- "$@"
