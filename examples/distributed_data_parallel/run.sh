#!/usr/bin/env bash
# Trains a small net on MNIST with 8 ranks on this machine; Open MPI starts them.
#
# Usage: bash run.sh [options]
#
# DATA_PATH in the environment is the folder of the training files (default: ./MNIST_Data/train/).
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
export DATA_PATH=${DATA_PATH:-./MNIST_Data/train/}
exec bash "${here%/*/*}/scripts/run_mpirun.sh" "$@" "$here/net.py"
