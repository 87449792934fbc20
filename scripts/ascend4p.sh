#!/usr/bin/env bash
# Trains with 4 ranks, one on each of devices 4 to 7 of this machine.
#
# Usage: bash scripts/ascend4p.sh [options] CONFIG [-- trainer arguments]
#
# Example:
#   bash scripts/ascend4p.sh configs/mnist/lenet5_mnist.yaml
#   bash scripts/ascend4p.sh --device_target CPU configs/mnist/lenet5_digits.yaml
#   bash scripts/ascend4p.sh CONFIG -- -o scheduler.num_epochs=3
test -n "${BASH_VERSION-}" || exec bash "$0" "$@" # typed as: sh scripts/ascend4p.sh
set +o posix && set -euo pipefail
here=$(readlink -f -- "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/launch.sh
source "${here%/*}/lib/launch.sh"

launch::main engine=local arguments=CONFIG device_target=Ascend device_num=8 devices='[4,8)' -- "$@"
