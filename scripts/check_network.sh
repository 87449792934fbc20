#!/usr/bin/env bash
# Checks the network of every device in a rank table before a training finds out.
#
# Usage: bash scripts/check_network.sh [options] RANK_TABLE_FILE
#
# Example:
#   bash scripts/check_network.sh hccl_8p_01234567_10.0.0.1.json
#   bash scripts/check_network.sh --hostfile hosts --ping hccl_2s_16p.json
test -n "${BASH_VERSION-}" || exec bash "$0" "$@" # typed as: sh scripts/check_network.sh
set +o posix && set -euo pipefail
here=$(readlink -f -- "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/launch.sh
source "${here%/*}/lib/launch.sh"

python::require
exec "$PYTHON" "$LAUNCH_ROOT/hccl_tools/check_network.py" "$@"
