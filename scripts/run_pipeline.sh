#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10 as a pipeline of two stages, with 8 ranks on devices 0 to 7 of this machine.
#
# Usage: bash scripts/run_pipeline.sh [options] DATA_PATH DEVICE_TARGET [-- trainer arguments]
#
# DATA_PATH is the folder of the data set (cifar-10-batches-bin). DEVICE_TARGET is Ascend. With CPU, the script refuses
# to start, because MindSpore does not support pipelines there.
#
# Example:
#   bash scripts/run_pipeline.sh /data/cifar-10-batches-bin Ascend
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE is 8, RANK_ID 0 to 7; DEVICE_ID is 0 to 7, or those of --devices; DATA_PATH is the argument, absolute.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" local DATA_PATH DEVICE_TARGET options=config without=device_target \
  device_target=Ascend devices='[0,8)' default_config=configs/cls/resnet/resnet50_cifar10_pipeline.yaml -- "$@"
