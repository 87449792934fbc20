#!/usr/bin/env bash
# Trains on the nodes of a Slurm allocation; srun starts the ranks.
#
# Usage: sbatch -N NODES --ntasks-per-node=N scripts/run_slurm.sh [options] CONFIG [-- trainer arguments]
#        salloc -N NODES --ntasks-per-node=N bash scripts/run_slurm.sh [options] CONFIG
#        salloc -N NODES --ntasks-per-node=N bash scripts/run_slurm.sh [options] PROGRAM [its words]
#
# The project, the environment and the data must be at the same paths on all nodes. After scancel, and at the job's
# time limit, the ranks get the grace time, but at most Slurm's KillWait (30 s by default) less 4 s. For more, let
# Slurm signal the script earlier: sbatch --signal=B:TERM@120.
#
# Example:
#   sbatch -N 2 --ntasks-per-node=8 scripts/run_slurm.sh configs/mnist/lenet5_mnist.yaml
#   salloc -N 2 --ntasks-per-node=2 bash scripts/run_slurm.sh --device_target CPU configs/mnist/lenet5_digits.yaml
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
if [[ ${LAUNCH_SCRIPT##*/} == slurm_script ]]; then # sbatch runs a copy of this file, and knows where it is from
  LAUNCH_SCRIPT=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Command=//p')
  LAUNCH_SCRIPT=$(readlink -f -- "${LAUNCH_SCRIPT%%run_slurm.sh*}run_slurm.sh")
fi
if [[ ! -r ${LAUNCH_SCRIPT%/*}/lib/launch.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "${LAUNCH_SCRIPT%/*}/lib/launch.sh" >&2
  exit 78
fi
# shellcheck source=scripts/lib/launch.sh
source "${LAUNCH_SCRIPT%/*}/lib/launch.sh"
LOG_NAME=run_slurm.sh

launch::main engine=srun arguments=CONFIG options='ntasks_per_node spare min_ranks' without='rank_table hccn_conf generation' \
  device_target=Ascend -- "$@"
