#!/usr/bin/env bash
# Trains a small net on MNIST with 8 ranks on this machine; Open MPI starts them.
#
# Usage: bash run.sh [options]
#
# DATA_PATH in the environment is the folder of the training files (default: ./MNIST_Data/train/).
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
script=${here%/*/*}/scripts/run_mpirun.sh
if [[ ! -r $script ]]; then
  printf '%s: %q is missing: this folder needs the project around it\n' "${0##*/}" "$script" >&2
  exit 78
fi
export DATA_PATH=${DATA_PATH:-./MNIST_Data/train/}
exec bash "$script" "$@" "$here/net.py"
