#!/usr/bin/env bash
# Trains with MindSpore's own launcher, msrun: no rank table; the ranks find each other through MindSpore's scheduler.
#
# Usage: bash scripts/run_msrun.sh [options] CONFIG [-- trainer arguments]
#
# With several hosts, type the command on each of them, with that host's --node_rank.
#
# Example:
#   bash scripts/run_msrun.sh --worker_num 8 configs/mnist/lenet5_mnist.yaml
#   bash scripts/run_msrun.sh --worker_num 2 --device_target CPU configs/mnist/lenet5_digits.yaml
#   bash scripts/run_msrun.sh --worker_num 16 --local_worker_num 8 --master_addr 10.0.0.1 --node_rank 1 CONFIG
test -n "${BASH_VERSION-}" || exec bash "$0" "$@" # typed as: sh scripts/run_msrun.sh
set +o posix && set -euo pipefail
here=$(readlink -f -- "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/launch.sh
source "${here%/*}/lib/launch.sh"

launch::main engine=msrun arguments=CONFIG options='worker_num local_worker_num master_addr master_port node_rank' \
  without='rank_table hccn_conf generation' device_target=Ascend device_num=8 -- "$@"
