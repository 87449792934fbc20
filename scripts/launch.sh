#!/usr/bin/env bash
# Starts any number of ranks of any program on this machine, and supervises them.
#
# Usage: bash scripts/launch.sh [options] PROGRAM [arguments]
#        bash scripts/launch.sh [options] CONFIG [-- trainer arguments]
#
# PROGRAM is a Python file, -m and a module, an executable file, or a program on PATH. All words after it are its
# arguments. CONFIG is a training config, *.yaml. On NPUs, the ranks get a rank table; on GPUs and CPUs, the launch also
# starts MindSpore's scheduler. Without --device_target, the launch uses this machine's NPUs, else its GPUs, else its
# CPUs.
#
# Example:
#   bash scripts/launch.sh -n 2 --device_target CPU train.py --epochs 1
#   bash scripts/launch.sh --devices "[4,8)" train.py --model resnet --data_dir data
#   bash scripts/launch.sh -n 8 -m package.train --config any.yaml
#   bash scripts/launch.sh --zoo run_distribute_train.sh hccl_8p.json /data/imagenet
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE is -n, or the number of --devices, else one for each device that is found.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" local CONFIG options='n sim_level sim_rank_id zoo preflight' device_target='' -- "$@"
