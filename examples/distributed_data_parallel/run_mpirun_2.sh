#!/usr/bin/env bash
# Trains a small net on MNIST with the ranks of the hosts of a file; Open MPI starts them.
#
# Usage: bash run_mpirun_2.sh [options] HOSTFILE
#
# HOSTFILE has a line for each host, such as: 10.0.0.1 slots=8
# DATA_PATH in the environment is the folder of the training files (default: ./MNIST_Data/train/), on every host.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
export DATA_PATH=${DATA_PATH:-./MNIST_Data/train/}
exec bash "${here%/*/*}/scripts/run_mpirun_2.sh" "$@" "$here/net.py"
