#!/usr/bin/env bash
# Trains with ranks of this machine that Open MPI starts, one on each of devices 0 to N-1.
#
# Usage: bash scripts/run_mpirun.sh [options] CONFIG [-- trainer arguments]
#        bash scripts/run_mpirun.sh [options] PROGRAM [its words]
#
# Options of mpirun are options here, too, such as -mca, -x and -H: see docs/mpirun.md.
#
# Example:
#   bash scripts/run_mpirun.sh -n 8 configs/mnist/lenet5_mnist.yaml
#   bash scripts/run_mpirun.sh -n 2 --device_target CPU configs/mnist/lenet5_digits.yaml
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

launch::main engine=mpirun others=mpirun_words arguments=CONFIG options='n no_sink output_filename ssh network spare min_ranks' without='rank_table hccn_conf generation' \
  device_target=Ascend -- "$@"
