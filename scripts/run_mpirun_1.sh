#!/usr/bin/env bash
# Trains on several hosts that are named in the command; Open MPI starts the ranks over ssh.
#
# Usage: bash scripts/run_mpirun_1.sh [options] [HOST:SLOTS,HOST:SLOTS] [-- trainer arguments]
#        bash scripts/run_mpirun_1.sh [options] [HOST:SLOTS,HOST:SLOTS] PROGRAM [its words]
#
# A host gets as many ranks as it has slots, one on each of its devices 0 to SLOTS-1. The project, the
# environment and the data must be at the same paths on all hosts. Without hosts all ranks run on this one.
# The script trains LeNet-5 on MNIST; DATA_PATH in the environment names the folder of the data.
# Options of mpirun are options here, too, such as -mca, -x and -H: see docs/mpirun.md.
#
# Example:
#   DATA_PATH=./MNIST_Data/train/ bash scripts/run_mpirun_1.sh 10.0.0.1:8,10.0.0.2:8
#   bash scripts/run_mpirun_1.sh --device_target CPU --config configs/mnist/lenet5_digits.yaml node1:2,node2:2
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

launch::main engine=mpirun others=mpirun_words arguments=HOSTS options='config n no_sink output_filename ssh network spare min_ranks' \
  without='rank_table hccn_conf generation' default_config=configs/mnist/lenet5_mnist.yaml \
  device_target=Ascend -- "$@"
