#!/usr/bin/env bash
# Trains with ranks on the GPUs of this machine; Open MPI starts them.
#
# Usage: bash scripts/run_gpu.sh [options] DATA_PATH [-- trainer arguments]
#
# DATA_PATH is the folder of the data set; the ranks get it in their environment.
#
# Example:
#   bash scripts/run_gpu.sh /data/cifar-10-batches-bin
#   bash scripts/run_gpu.sh -n 2 --device_target CPU --config configs/mnist/lenet5_digits.yaml data/digits
test -n "${BASH_VERSION-}" || exec bash "$0" "$@" # typed as: sh scripts/run_gpu.sh
set +o posix && set -euo pipefail
here=$(readlink -f -- "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/launch.sh
source "${here%/*}/lib/launch.sh"

launch::main engine=mpirun arguments=DATA_PATH options='config n output_filename' without='rank_table hccn_conf generation' \
  config=configs/cls/resnet/resnet50_cifar10.yaml device_target=GPU device_num=8 -- "$@"
