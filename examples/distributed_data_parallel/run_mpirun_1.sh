#!/usr/bin/env bash
# Trains a small net on MNIST with the ranks of several hosts; Open MPI starts them.
#
# Usage: bash run_mpirun_1.sh [options] HOST:SLOTS,HOST:SLOTS
#
# DATA_PATH in the environment is the folder of the training files (default: ./MNIST_Data/train/), on every host.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
export DATA_PATH=${DATA_PATH:-./MNIST_Data/train/}
exec bash "${here%/*/*}/scripts/run_mpirun_1.sh" "$@" "$here/net.py"
