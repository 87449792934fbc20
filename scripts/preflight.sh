#!/usr/bin/env bash
# Checks all hosts of a job before it starts, and prints only differences and what would stop the job.
#
# Usage: bash scripts/preflight.sh [options] [RANK_TABLE_FILE]
#
# Without a list of hosts, it checks the nodes of the Slurm allocation, else the servers of the rank table, else only
# this host. In the pods of a job, run the same command in each pod: they connect, and the pod of rank 0 prints the
# result. The script changes nothing on any host. With --trial, it also starts a short job there, and keeps its logs in
# --log_dir.
#
# Example:
#   bash scripts/preflight.sh --hostfile hosts --train_script train.py
#   bash scripts/preflight.sh -H node1:8,node2:8 hccl_2s_16p.json
#   bash scripts/preflight.sh --trial --data /data/imagenet --hostfile hosts
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" main:tools/preflight/main.py "$@"
