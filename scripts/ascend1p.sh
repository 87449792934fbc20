#!/usr/bin/env bash
# Trains with one rank on device 0 of this machine.
#
# Usage: bash scripts/ascend1p.sh [options] CONFIG [-- trainer arguments]
#
# Example:
#   bash scripts/ascend1p.sh configs/mnist/lenet5_mnist.yaml
#   bash scripts/ascend1p.sh --device_target CPU configs/mnist/lenet5_digits.yaml
#   bash scripts/ascend1p.sh CONFIG -- -o scheduler.num_epochs=3
test -n "${BASH_VERSION-}" || exec bash "$0" "$@" # typed as: sh scripts/ascend1p.sh
set +o posix && set -euo pipefail
here=$(readlink -f -- "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/launch.sh
source "${here%/*}/lib/launch.sh"

launch::main engine=local arguments=CONFIG device_target=Ascend device_num=8 devices='[0,1)' -- "$@"
