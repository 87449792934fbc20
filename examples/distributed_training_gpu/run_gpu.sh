#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10 with ranks on the GPUs of this machine; Open MPI starts them.
#
# Usage: bash run_gpu.sh [options] DATA_PATH
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
script=${here%/*/*}/scripts/run_gpu.sh
if [[ ! -r $script ]]; then
  printf '%s: %q is missing: this folder needs the project around it\n' "${0##*/}" "$script" >&2
  exit 78
fi
exec bash "$script" --pytest "$here/resnet50_distributed_training_gpu.py" "$@"
