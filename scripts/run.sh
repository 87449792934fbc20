#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10, data parallel, with ranks on devices 0 to RANK_SIZE-1 of this machine.
#
# Usage: bash scripts/run.sh [options] DATA_PATH RANK_SIZE [-- trainer arguments]
#        bash scripts/run.sh [options] DATA_PATH RANK_SIZE PROGRAM [its words]
#
# DATA_PATH is the folder of the data set (cifar-10-batches-bin), RANK_SIZE 1, 2, 4 or 8. DATA_PATH
# replaces the dataset_root of the config, also of one that --config names.
#
# Example:
#   bash scripts/run.sh /data/cifar-10-batches-bin 8
#   bash scripts/run.sh --device_target CPU --config configs/cls/resnet/resnet50_cifar10_cpu.yaml data/cifar10 2
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

launch::main engine=local arguments='DATA_PATH RANK_SIZE' options=config device_target=Ascend \
  default_config=configs/cls/resnet/resnet50_cifar10.yaml -- "$@"
