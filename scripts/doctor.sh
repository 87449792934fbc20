#!/usr/bin/env bash
# Prints one page about this machine, to read before a launch and to paste into a bug report.
#
# Usage: bash scripts/doctor.sh [options]
#
# Each line is ok, absent (not here, and not needed), unknown, warning or problem. The line below a problem says
# what to do. docs/doctor.md explains every line. The script changes nothing and sends nothing.
#
# Example:
#   bash scripts/doctor.sh
#   bash scripts/doctor.sh --format json >machine.json
test -n "${BASH_VERSION-}" || exec bash "$0" "$@" # typed as: sh scripts/doctor.sh
set +o posix && set -euo pipefail
here=$(readlink -f -- "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/doctor.sh
source "${here%/*}/lib/doctor.sh"

doctor::main "$@"
