#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10 with 8 ranks, as a pipeline of two stages.
#
# Usage: bash run_pipeline.sh [options] DATA_PATH DEVICE_TARGET
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
exec bash "${here%/*/*}/scripts/run_pipeline.sh" --pytest "$here/resnet50_distributed_training_pipeline.py" "$@"
