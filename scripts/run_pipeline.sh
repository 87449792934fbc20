#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10 as a pipeline of two stages, with 8 ranks on devices 0 to 7 of this machine.
#
# Usage: bash scripts/run_pipeline.sh [options] DATA_PATH DEVICE_TARGET [-- trainer arguments]
#
# DATA_PATH is the folder of the data set (cifar-10-batches-bin). DEVICE_TARGET is Ascend. With CPU the
# script refuses to start, because MindSpore runs no pipeline there.
#
# Example:
#   bash scripts/run_pipeline.sh /data/cifar-10-batches-bin Ascend
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

launch::main engine=local arguments='DATA_PATH DEVICE_TARGET' options=config without=device_target \
  device_target=Ascend devices='[0,8)' default_config=configs/cls/resnet/resnet50_cifar10_pipeline.yaml -- "$@"
