#!/usr/bin/env bash
# Trains in the pods of a Kubernetes job; use it as the command of every pod's container.
#
# Usage: bash scripts/run_pod.sh [options] PROGRAM [arguments]
#        bash scripts/run_pod.sh [options] CONFIG [-- trainer arguments]
#
# The environment describes the job: the variables of ascend-operator, Volcano, ModelArts or an Indexed Job, and the
# rank table in RANK_TABLE_FILE. The script waits until the table is complete, finds its own server in it, and starts
# the ranks of this pod. Without a table, MindSpore's scheduler runs in pod 0, or in the pod that the operator has for
# it. The log of the pod with rank 0 has the output of the job; the logs of the other pods have only failures. If the
# operator rewrites the table, the script ends the ranks and exits with 138. The operator then starts the pod again.
#
# Example:
#   bash scripts/run_pod.sh train.py --epochs 9
#   bash scripts/run_pod.sh --worker_num 16 --local_worker_num 8 --master_addr job-0.job configs/mnist/lenet5_mnist.yaml
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE, RANK_ID and DEVICE_ID come from the rank table, or from what the operator has put into the environment.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" local CONFIG placement=pod grace=25 without=exclude device_target=Ascend \
  options='worker_num local_worker_num master_addr master_port node_rank table_dir pod_wait preflight' -- "$@"
