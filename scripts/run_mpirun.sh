#!/usr/bin/env bash
# Trains with ranks of this machine that Open MPI starts, one on each of devices 0 to N-1.
#
# Usage: bash scripts/run_mpirun.sh [options] CONFIG [-- trainer arguments]
#
# Example:
#   bash scripts/run_mpirun.sh -n 8 configs/mnist/lenet5_mnist.yaml
#   bash scripts/run_mpirun.sh -n 2 --device_target CPU configs/mnist/lenet5_digits.yaml
test -n "${BASH_VERSION-}" || exec bash "$0" "$@" # typed as: sh scripts/run_mpirun.sh
set +o posix && set -euo pipefail
here=$(readlink -f -- "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/launch.sh
source "${here%/*}/lib/launch.sh"

launch::main engine=mpirun arguments=CONFIG options='n no_sink output_filename' without='rank_table hccn_conf generation' \
  device_target=Ascend device_num=8 -- "$@"
