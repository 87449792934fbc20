#!/usr/bin/env bash
# Trains on the nodes of a Slurm allocation; srun starts the ranks.
#
# Usage: sbatch -N NODES --ntasks-per-node=N scripts/run_slurm.sh [options] CONFIG [-- trainer arguments]
#        salloc -N NODES --ntasks-per-node=N bash scripts/run_slurm.sh [options] CONFIG
#        salloc -N NODES --ntasks-per-node=N bash scripts/run_slurm.sh [options] PROGRAM [arguments]
#
# The environment and the data must be at the same paths on all nodes. All nodes need the same version of this project,
# installed in the environment or at the same path. After scancel and at the job's time limit, the ranks get the grace
# time, but at most Slurm's KillWait (30 s by default) minus 4 s. For a longer time, let Slurm signal the script
# earlier: sbatch --signal=B:TERM@120.
#
# Example:
#   sbatch -N 2 --ntasks-per-node=8 scripts/run_slurm.sh configs/mnist/lenet5_mnist.yaml
#   salloc -N 2 --ntasks-per-node=2 bash scripts/run_slurm.sh --device_target CPU configs/mnist/lenet5_digits.yaml
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
if [[ ${LAUNCH_LIB##*/} == slurm_script ]]; then # sbatch runs a copy of this file, and knows where it is from
  LAUNCH_LIB=$(scontrol show job "$SLURM_JOB_ID" | sed -n 's/^ *Command=//p')
  LAUNCH_LIB=$(readlink -f -- "${LAUNCH_LIB%%run_slurm.sh*}run_slurm.sh")
fi
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE is the number of tasks; DEVICE_ID is the rank's number on its node, or that of --devices.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" srun CONFIG name=run_slurm.sh device_target=Ascend -- "$@"
