#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10 with RANK_SIZE ranks, one on each NPU; MindSpore cuts the net.
#
# Usage: bash run.sh [options] DATA_PATH RANK_SIZE
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
script=${here%/*/*}/scripts/run.sh
if [[ ! -r $script ]]; then
  printf '%s: %q is missing: this folder needs the project around it\n' "${0##*/}" "$script" >&2
  exit 78
fi
exec bash "$script" --pytest "$here/resnet50_distributed_training.py" "$@"
