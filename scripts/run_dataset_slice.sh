#!/usr/bin/env bash
# Trains with images cut into strips: each rank on devices 0 to RANK_SIZE-1 gets a part of every image.
#
# Usage: bash scripts/run_dataset_slice.sh [options] DATA_PATH RANK_SIZE [-- trainer arguments]
#
# DATA_PATH is the folder of the data set (cifar-10-batches-bin), RANK_SIZE 1, 2, 4 or 8. The config says how
# images are cut (parallel.dataset_strategy); the script's own config is for 8 ranks. MindSpore cuts images on Ascend
# and GPU only.
#
# Example:
#   bash scripts/run_dataset_slice.sh /data/cifar-10-batches-bin 8
#   bash scripts/run_dataset_slice.sh /data/cifar-10-batches-bin 4 -- -o 'parallel.dataset_strategy=[[1,1,1,4],[1]]'
test -n "${BASH_VERSION-}" || exec bash "$0" "$@" # typed as: sh scripts/run_dataset_slice.sh
set +o posix && set -euo pipefail
here=$(readlink -f -- "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/launch.sh
source "${here%/*}/lib/launch.sh"

launch::main engine=local arguments='DATA_PATH RANK_SIZE' options=config device_target=Ascend device_num=8 \
  config=configs/cls/resnet/resnet50_cifar10_slice.yaml -- "$@"
