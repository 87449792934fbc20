#!/usr/bin/env bash
# Trains on the hosts in a hostfile; Open MPI starts the ranks over ssh.
#
# Usage: bash scripts/run_mpirun_2.sh [options] HOSTFILE [-- trainer arguments]
#        bash scripts/run_mpirun_2.sh [options] HOSTFILE PROGRAM [arguments]
#
# HOSTFILE has Open MPI's syntax, with one host per line, such as: 10.0.0.1 slots=8. A host gets one rank per slot, on
# its devices 0 to SLOTS-1. The environment and the data must be at the same paths on all hosts. All hosts need the same
# version of this project, installed in the environment or at the same path. The script trains LeNet-5 on MNIST;
# DATA_PATH in the environment is the data folder. The script also takes mpirun's options, such as -mca and -x: see
# docs/mpirun.md.
#
# Example:
#   DATA_PATH=./MNIST_Data/train/ bash scripts/run_mpirun_2.sh ./hostfile
#   bash scripts/run_mpirun_2.sh --device_target CPU --config configs/mnist/lenet5_digits.yaml hostfile
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE is the sum of slots; DEVICE_ID is the rank's number on its host. DATA_PATH is yours, if you export it.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" mpirun HOSTFILE options='config no_sink' device_target=Ascend \
  default_config=configs/mnist/lenet5_mnist.yaml -- "$@"
