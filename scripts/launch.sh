#!/usr/bin/env bash
# Starts any number of ranks of any program on this machine, and supervises them.
#
# Usage: bash scripts/launch.sh [options] PROGRAM [its words]
#        bash scripts/launch.sh [options] CONFIG [-- trainer arguments]
#
# PROGRAM is a Python file, -m and a module, a file with the run bit, or a program on PATH. All words after it are its
# own. CONFIG is a training config, *.yaml. On NPUs the ranks get a rank table; on GPUs and CPUs MindSpore's scheduler
# runs beside them. Without --device_target the launch takes the NPUs, else the GPUs, else the CPUs of this machine.
#
# Example:
#   bash scripts/launch.sh -n 2 --device_target CPU train.py --epochs 1
#   bash scripts/launch.sh --devices "[4,8)" train.py --model resnet --data_dir data
#   bash scripts/launch.sh -n 8 -m package.train --config any.yaml
case ${LAUNCH_SHELL-} in # starts bash again, without what the environment tells it: see lib/own_shell.sh
  "$$/"*) ;;
  *)
    LAUNCH_SHELL=$$/${POSIXLY_CORRECT+posix}/${SHELLOPTS-}/${BASHOPTS-}${EXECIGNORE+/$EXECIGNORE}
    POSIXLY_CORRECT=${POSIXLY_CORRECT-}
    case ${BASH-} in */bash*) ;; *) BASH=bash ;; esac # with BASH_ARGV0, bash says that it is the login shell
    \export LAUNCH_SHELL && \unset EXECIGNORE BASH_ARGV0 && \exec "$BASH" -p -- "$0" "$@"
    ;;
esac
set -euo pipefail
LAUNCH_SCRIPT=$(readlink -f -- "$0")
if [[ ! -r ${LAUNCH_SCRIPT%/*}/lib/launch.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "${LAUNCH_SCRIPT%/*}/lib/launch.sh" >&2
  exit 78
fi
# shellcheck source=scripts/lib/launch.sh
source "${LAUNCH_SCRIPT%/*}/lib/launch.sh"

launch::main engine=local arguments=CONFIG options=n device_target='' -- "$@"
