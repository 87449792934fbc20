#!/usr/bin/env bash
# Prints one page about this machine, to read before a launch and to paste into a bug report.
#
# Usage: bash scripts/doctor.sh [options]
#
# Each line is ok, absent (not here, and not needed), unknown, warning or problem; what to do about it
# stands below it. docs/doctor.md says what each line means. Nothing of yours is changed, and nothing is sent.
#
# Example:
#   bash scripts/doctor.sh
#   bash scripts/doctor.sh --format json >machine.json
#
# Options (hyphens and underscores are the same):
#   --format text|json
#       a page for people, or the same for a program (default: text)
#   --log_dir DIR
#       the folder that launches would write their logs to (default: logs)
#   --hccn_conf FILE
#       addresses of the devices where hccn_tool is not on PATH (default: /etc/hccn.conf)
#   --help
#       this page
#
# Exit: 0 no problem, 1 problems, 2 usage.
test -n "${BASH_VERSION-}" || exec bash "$0" "$@" # typed as: sh scripts/doctor.sh
set +o posix && set -euo pipefail
here=$(readlink -f -- "${BASH_SOURCE[0]}")
# shellcheck source=scripts/lib/doctor.sh
source "${here%/*}/lib/doctor.sh"

doctor::main "$@"
