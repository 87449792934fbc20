#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10 with 8 ranks, as a pipeline of two stages.
#
# Usage: bash run_pipeline.sh [options] DATA_PATH DEVICE_TARGET
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
script=${here%/*/*}/scripts/run_pipeline.sh
if [[ ! -r $script ]]; then
  printf '%s: %q is missing: this folder needs the project around it\n' "${0##*/}" "$script" >&2
  exit 78
fi
exec bash "$script" --pytest "$here/resnet50_distributed_training_pipeline.py" "$@"
