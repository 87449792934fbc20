#!/usr/bin/env bash
# Trains with ranks on the GPUs of this machine; Open MPI starts them.
#
# Usage: bash scripts/run_gpu.sh [options] DATA_PATH [-- trainer arguments]
#        bash scripts/run_gpu.sh [options] [DATA_PATH] PROGRAM [its words]
#
# DATA_PATH is the folder of the data set; the ranks get it in their environment. Options of mpirun are options
# here, too, such as -mca, -x and --hostfile: see docs/mpirun.md.
#
# Example:
#   bash scripts/run_gpu.sh /data/cifar-10-batches-bin
#   bash scripts/run_gpu.sh -n 2 --device_target CPU --config configs/mnist/lenet5_digits.yaml data/digits
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

launch::main engine=mpirun others=mpirun_words arguments=DATA_PATH options='config n output_filename ssh network spare min_ranks' without='rank_table hccn_conf generation' \
  default_config=configs/cls/resnet/resnet50_cifar10.yaml device_target=GPU -- "$@"
