#!/usr/bin/env bash
# Trains on the servers of a rank table: typed on each of them, or once for all with --hostfile.
#
# Usage: bash scripts/run_cluster.sh [options] DATA_PATH RANK_TABLE_FILE RANK_SIZE RANK_START
#        bash scripts/run_cluster.sh --hostfile HOSTS [options] DATA_PATH
#        bash scripts/run_cluster.sh [options] [DATA_PATH] RANK_TABLE_FILE RANK_SIZE RANK_START PROGRAM [its words]
#        bash scripts/run_cluster.sh --hostfile HOSTS [options] [DATA_PATH] PROGRAM [its words]
#
# RANK_SIZE is the number of ranks of the whole table, RANK_START the first rank of the server on which
# the command is typed. With --hostfile the script builds the table, or checks the one of --rank_table, and
# copies it to every host. The project, the environment and the data must be at the same paths on all hosts.
#
# Example:
#   on the first of two servers:   bash scripts/run_cluster.sh /data/cifar-10 hccl_2s_16p.json 16 0
#   on the second:                 bash scripts/run_cluster.sh /data/cifar-10 hccl_2s_16p.json 16 8
#   on one, for both:              bash scripts/run_cluster.sh --hostfile hosts /data/cifar-10
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

way=(engine=local placement=server arguments='DATA_PATH RANK_TABLE_FILE RANK_SIZE RANK_START'
  options='config hostfile' without='rank_table devices hccn_conf')
for word; do
  case $word in
    --) break ;;
    --hostfile | --hostfile=*)
      way=(engine=mpirun placement=servers arguments=DATA_PATH options='config hostfile ssh network spare min_ranks' without='')
      ;;
  esac
done
launch::main "${way[@]}" default_config=configs/cls/resnet/resnet50_cifar10.yaml device_target=Ascend -- "$@"
