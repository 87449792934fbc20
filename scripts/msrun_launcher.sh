#!/usr/bin/env bash
# Starts a quoted command like the script with this name in mindformers and mindrlhf, and supervises its ranks.
#
# Usage: bash scripts/msrun_launcher.sh [options] "COMMAND"
#        bash scripts/msrun_launcher.sh [options] "COMMAND" WORKER_NUM
#        bash scripts/msrun_launcher.sh [options] "COMMAND" WORKER_NUM MASTER_PORT LOG_DIR JOIN CLUSTER_TIME_OUT
#        bash scripts/msrun_launcher.sh [options] "COMMAND" WORKER_NUM LOCAL_WORKER MASTER_ADDR MASTER_PORT NODE_RANK LOG_DIR JOIN CLUSTER_TIME_OUT
#
# The script splits COMMAND into words like a shell, but expands nothing in it. The other arguments default to 8 ranks
# on this host, a free port, logs in output/msrun_log, and 7200 s to wait for all hosts. The launch always waits for its
# ranks, with any value of JOIN. The trainer finds its package through PYTHONPATH, which this script does not change.
#
# Example:
#   bash scripts/msrun_launcher.sh "run_mindformer.py --config CONFIG --run_mode train"
#   bash scripts/msrun_launcher.sh --device_target CPU "net.py --epochs 1" 2
#   bash scripts/msrun_launcher.sh "net.py" 16 8 10.0.0.1 8118 0 output/msrun_log False 7200
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# DEVICE_ID is the rank's number on its host. MS_TOPO_TIMEOUT is CLUSTER_TIME_OUT, unless you export another.
# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" msrun quoted=quoted log_dir=output/msrun_log without='train_script pytest' device_target=Ascend -- "$@"
