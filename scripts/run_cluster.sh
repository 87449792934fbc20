#!/usr/bin/env bash
# Trains on the servers of a rank table: typed on each of them, or once for all with --hostfile.
#
# Usage: bash scripts/run_cluster.sh [options] DATA_PATH RANK_TABLE_FILE RANK_SIZE RANK_START
#        bash scripts/run_cluster.sh --hostfile HOSTS [options] DATA_PATH
#        bash scripts/run_cluster.sh [options] [DATA_PATH] RANK_TABLE_FILE RANK_SIZE RANK_START PROGRAM [arguments]
#        bash scripts/run_cluster.sh --hostfile HOSTS [options] [DATA_PATH] PROGRAM [arguments]
#
# RANK_SIZE is the number of ranks of the whole table, RANK_START the first rank of the server on which
# the command is typed. With --hostfile the script builds the table, or checks the one of --rank_table, and
# copies it to every host. The environment and the data must be at the same paths on all hosts. All need the
# same version of this project, installed in the environment or at the same path. A table of version 2.0 names no hosts:
# --table_hosts does it where the command is typed on each of them, --hostfile where it is typed once.
#
# Example:
#   on the first of two servers:   bash scripts/run_cluster.sh /data/cifar-10 hccl_2s_16p.json 16 0
#   on the second:                 bash scripts/run_cluster.sh /data/cifar-10 hccl_2s_16p.json 16 8
#   on one, for both:              bash scripts/run_cluster.sh --hostfile hosts /data/cifar-10
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# RANK_SIZE is that of the whole table; RANK_ID and DEVICE_ID are those of this server's rows; RANK_TABLE_FILE is a copy of
# the table's path; DATA_PATH is the argument, absolute.
# A --hostfile says that this command starts the ranks of all servers. One behind a second argument is a program's own.
LAUNCH_SHOWN=''
for LAUNCH_WORD; do
  case $LAUNCH_WORD in
    --) break ;;
    --hostfile | --hostfile=*)
      # shellcheck source=scripts/lib/start.sh
      \. "$LAUNCH_LIB/start.sh" mpirun DATA_PATH placement=servers options='config hostfile ssh network spare min_ranks preflight' \
        default_config=configs/cls/resnet/resnet50_cifar10.yaml device_target=Ascend -- "$@"
      ;;
    -*=*) ;;
    -*) LAUNCH_SHOWN=${LAUNCH_SHOWN%:}: ;; # the next word may be its value
    *)
      case $LAUNCH_SHOWN in
        *:) LAUNCH_SHOWN=${LAUNCH_SHOWN%:} ;;
        argument) break ;;
        *) LAUNCH_SHOWN=argument ;;
      esac
      ;;
  esac
done
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" local DATA_PATH RANK_TABLE_FILE RANK_SIZE RANK_START placement=server options='config hostfile table_hosts preflight' \
  without='rank_table devices hccn_conf' default_config=configs/cls/resnet/resnet50_cifar10.yaml device_target=Ascend -- "$@"
