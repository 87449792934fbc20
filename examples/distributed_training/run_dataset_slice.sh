#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10 with images cut into strips, one for each rank.
#
# Usage: bash run_dataset_slice.sh [options] DATA_PATH RANK_SIZE
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
exec bash "${here%/*/*}/scripts/run_dataset_slice.sh" --pytest "$here/resnet50_distributed_training_dataset_slice.py" "$@"
