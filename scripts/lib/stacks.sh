# shellcheck shell=bash
# Where the ranks of a job that hangs are in their code: tools/diagnosis/stacks.py asks those of this host, and the agents
# ask those of other hosts.

# stacks::report: writes every rank's stack to rank_N.stack beside its log, and a summary to stderr.
stacks::report() {
  local name line
  local -a processes=()
  for name in "${PLAN_RANKS[@]}"; do
    [[ -n ${MEMBERS_STATUS[$name]-} || -z ${MEMBERS_GROUP[$name]-} ]] || processes+=("$name=${MEMBERS_GROUP[$name]}")
  done
  if ((${#processes[@]} == 0)); then
    [[ -z $CARRIED_ENGINE ]] || stacks::_carried
    return 0
  fi
  while IFS= read -r line; do
    log::say "$line"
  done < <(supervise::close_pipes && exec "$PYTHON" "$LAUNCH_ROOT/tools/diagnosis/stacks.py" "$PLAN_LOG_DIR" "${processes[@]}")
}

# The same for ranks that an engine started: their agents report it. Ranks at the same place share a line.
stacks::_carried() {
  local name at
  supervise::ask_stacks
  alike::clear
  for name in "${PLAN_RANKS[@]}"; do
    [[ -z ${CARRIED_STACK[$name]-} ]] || alike::add "${CARRIED_STACK[$name]}" "$name"
  done
  for at in "${!ALIKE_KEYS[@]}"; do
    alike::named "$at"
    log::say "$REPLY: ${ALIKE_KEYS[at]}"
  done
}
