#!/usr/bin/env bash
# Trains ResNet-50 on CIFAR-10 on the servers of a rank table: run it on each server.
#
# Usage: bash run_cluster.sh [options] DATA_PATH RANK_TABLE_FILE RANK_SIZE RANK_START
set -euo pipefail
here=$(dirname -- "$(readlink -f -- "$0")")
script=${here%/*/*}/scripts/run_cluster.sh
if [[ ! -r $script ]]; then
  printf '%s: %q is missing: this folder needs the project around it\n' "${0##*/}" "$script" >&2
  exit 78
fi
exec bash "$script" --pytest "$here/resnet50_distributed_training.py" "$@"
