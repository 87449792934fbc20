#!/usr/bin/env bash
# Trains a small net on MNIST with the ranks of the hosts of a file; Open MPI starts them.
#
# Usage: bash run_mpirun_2.sh [options] HOSTFILE
#
# HOSTFILE has a line for each host, such as: 10.0.0.1 slots=8
# DATA_PATH in the environment is the folder of the training files (default: ./MNIST_Data/train/), on every host.
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
script=${here%/*/*}/scripts/run_mpirun_2.sh
if [[ ! -r $script ]]; then
  printf '%s: %q is missing: this folder needs the project around it\n' "${0##*/}" "$script" >&2
  exit 78
fi
export DATA_PATH=${DATA_PATH:-./MNIST_Data/train/}
exec bash "$script" "$@" "$here/net.py"
