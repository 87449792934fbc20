#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10 with ranks on the GPUs of this machine; Open MPI starts them.
#
# Usage: bash run_gpu.sh [options] DATA_PATH
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
exec bash "${here%/*/*}/scripts/run_gpu.sh" --pytest "$here/resnet50_distributed_training_gpu.py" "$@"
