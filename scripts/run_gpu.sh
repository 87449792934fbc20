#!/usr/bin/env bash
# Trains on the GPUs of this machine; Open MPI starts the ranks.
#
# Usage: bash scripts/run_gpu.sh [options] DATA_PATH [-- trainer arguments]
#        bash scripts/run_gpu.sh [options] [DATA_PATH] PROGRAM [arguments]
#
# DATA_PATH is the folder of the data set; the ranks get it in their environment. The script also takes mpirun's
# options, such as -mca, -x and --hostfile: see docs/mpirun.md.
#
# Example:
#   bash scripts/run_gpu.sh /data/cifar-10-batches-bin
#   bash scripts/run_gpu.sh -n 2 --device_target CPU --config configs/mnist/lenet5_digits.yaml data/digits
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
\. "$LAUNCH_LIB/start.sh" mpirun DATA_PATH options=config device_target=GPU \
  default_config=configs/cls/resnet/resnet50_cifar10.yaml -- "$@"
