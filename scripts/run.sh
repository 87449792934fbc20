#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10, data parallel, with ranks on devices 0 to RANK_SIZE-1 of this machine.
#
# Usage: bash scripts/run.sh [options] DATA_PATH RANK_SIZE [-- trainer arguments]
#        bash scripts/run.sh [options] DATA_PATH RANK_SIZE PROGRAM [arguments]
#
# DATA_PATH is the folder of the data set (cifar-10-batches-bin); RANK_SIZE is 1, 2, 4 or 8. DATA_PATH replaces
# dataset_root in the config, also in a config from --config.
#
# Example:
#   bash scripts/run.sh /data/cifar-10-batches-bin 8
#   bash scripts/run.sh --device_target CPU --config configs/cls/resnet/resnet50_cifar10_cpu.yaml data/cifar10 2
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE is the argument; DEVICE_ID is 0 to RANK_SIZE-1, or those of --devices; DATA_PATH is the argument, absolute.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" local DATA_PATH RANK_SIZE options=config device_target=Ascend \
  default_config=configs/cls/resnet/resnet50_cifar10.yaml -- "$@"
