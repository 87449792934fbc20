#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10 with RANK_SIZE ranks, one on each NPU; MindSpore cuts the net.
#
# Usage: bash run.sh [options] DATA_PATH RANK_SIZE
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
exec bash "${here%/*/*}/scripts/run.sh" --pytest "$here/resnet50_distributed_training.py" "$@"
