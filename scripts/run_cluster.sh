#!/usr/bin/env bash
# Trains on the servers of a rank table: run it on each server, or once for all servers with --hostfile.
#
# Usage: bash scripts/run_cluster.sh [options] DATA_PATH RANK_TABLE_FILE RANK_SIZE RANK_START
#        bash scripts/run_cluster.sh --hostfile HOSTS [options] DATA_PATH
#        bash scripts/run_cluster.sh [options] [DATA_PATH] RANK_TABLE_FILE RANK_SIZE RANK_START PROGRAM [arguments]
#        bash scripts/run_cluster.sh --hostfile HOSTS [options] [DATA_PATH] PROGRAM [arguments]
#
# RANK_SIZE is the number of ranks in the whole table. RANK_START is the first rank of the server on which you type the
# command. With --hostfile, the script builds the table, or checks the table from --rank_table, and copies it to every
# host. The environment and the data must be at the same paths on all hosts. All hosts need the same version of this
# project, installed in the environment or at the same path. A table of version 2.0 has no host names. Use --table_hosts
# if you type the command on each host, and --hostfile if you type it once.
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

# RANK_SIZE is the size of the whole table; RANK_ID and DEVICE_ID come from this server's rows; RANK_TABLE_FILE is a copy of
# the table's path; DATA_PATH is the argument, absolute.
# With --hostfile, this command starts the ranks of all servers. A --hostfile after a second argument is the program's.
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
