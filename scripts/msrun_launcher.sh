#!/usr/bin/env bash
# Starts a quoted command as mindformers' and mindrlhf's script of this name does, and supervises its ranks.
#
# Usage: bash scripts/msrun_launcher.sh [options] "COMMAND"
#        bash scripts/msrun_launcher.sh [options] "COMMAND" WORKER_NUM
#        bash scripts/msrun_launcher.sh [options] "COMMAND" WORKER_NUM MASTER_PORT LOG_DIR JOIN CLUSTER_TIME_OUT
#        bash scripts/msrun_launcher.sh [options] "COMMAND" WORKER_NUM LOCAL_WORKER MASTER_ADDR MASTER_PORT NODE_RANK LOG_DIR JOIN CLUSTER_TIME_OUT
#
# COMMAND is split as a shell splits words, but nothing in it is expanded. Without the words after it: 8 ranks on this
# host, a free port, logs in output/msrun_log, and 7200 s for all hosts to come. The launch always waits for its ranks,
# whatever JOIN says. The trainer finds its package through PYTHONPATH, which this script does not change.
#
# Example:
#   bash scripts/msrun_launcher.sh "run_mindformer.py --config CONFIG --run_mode train"
#   bash scripts/msrun_launcher.sh --device_target CPU "net.py --epochs 1" 2
#   bash scripts/msrun_launcher.sh "net.py" 16 8 10.0.0.1 8118 0 output/msrun_log False 7200
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

launch::main engine=msrun quoted=quoted arguments='' log_dir=output/msrun_log \
  options='worker_num local_worker_num master_addr master_port node_rank' \
  without='rank_table hccn_conf generation train_script pytest' device_target=Ascend -- "$@"
