#!/usr/bin/env bash
# Checks the network of every device in a rank table before a training.
#
# Usage: bash scripts/check_network.sh [options] RANK_TABLE_FILE
#
# Example:
#   bash scripts/check_network.sh hccl_8p_01234567_10.0.0.1.json
#   bash scripts/check_network.sh --hostfile hosts --ping hccl_2s_16p.json
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# shellcheck source=scripts/lib/start.sh
\. "$LAUNCH_LIB/start.sh" main:hccl_tools/check_network.py "$@"
