# shellcheck shell=bash
# Members that an engine started. We start and stop only the engine's process. The ranks' agents (rank_agent.sh) report
# to us through the engine (engines/relay.sh) or, on this host, directly on the bus.

CARRIED_ENGINE=''           # the name of the engine's member; empty: we start the ranks ourselves
CARRIED_WAY=0               # seconds that an order to the ranks may take if it goes through the engine
CARRIED_ORDERED_AT=0        # uptime, in hundredths of a second, when the engine was last told to stop
declare -A CARRIED_STACK=() # name -> where the rank is, from its agent

# carried::by NAME [SECONDS]: the engine's member NAME starts the ranks; its orders take at most SECONDS.
carried::by() {
  CARRIED_ENGINE=$1 CARRIED_WAY=${2-0} CARRIED_STACK=()
}

# carried::_is NAME: whether the engine started it.
carried::_is() {
  [[ -z ${MEMBERS_MINDER[$1]-} ]]
}

# carried::only_starts NAME: whether it is an engine that passes no orders on: its ranks are on this host, and get them
# from us.
carried::only_starts() {
  [[ $1 == "${CARRIED_ENGINE:-none}" && $CARRIED_WAY -eq 0 ]]
}

# carried::engine_ended: marks as lost all members whose end was not reported and whose processes we cannot see. The
# first of them, or nothing, in REPLY.
carried::engine_ended() {
  local name first=''
  for name in "${MEMBERS_NAMES[@]}"; do
    [[ -z ${MEMBERS_STATUS[$name]-}${MEMBERS_GROUP[$name]-}${MEMBERS_MINDER[$name]-} ]] || continue
    members::lost "$name"
    first=${first:-$name}
  done
  REPLY=$first
}

# carried::is_gone NAME: whether a rank of this host has ended and its agent and watcher were killed: they would have
# reported the end within 2 s.
carried::is_gone() {
  local -r group=${MEMBERS_GROUP[$1]-}
  if [[ -z $group ]] || processes::group_lives "$group"; then
    return 1
  fi
  members::seems_gone "$1"
  clock::reached "$((MEMBERS_GONE_SINCE[$1] + 200))"
}

# carried::stop: remembers when the engine got the order to stop, which stopping.sh sends.
carried::stop() {
  clock::now
  CARRIED_ORDERED_AT=$REPLY
}

# carried::repeat_order: repeats the order to stop once a second. An order passes the relay, the engine and the agents.
# It may arrive before an agent can take it, and bash sometimes loses one. A second order does no harm.
carried::repeat_order() {
  local -r group=${MEMBERS_GROUP[${CARRIED_ENGINE:-none}]-}
  if [[ -n $group ]] && ((CARRIED_WAY)) && clock::reached "$((CARRIED_ORDERED_AT + 100))"; then
    carried::stop
    kill -s TERM -- "-$group" 2>/dev/null || :
  fi
}

# carried::ask_stacks: asks every agent where its rank is; fails if the engine is gone.
carried::ask_stacks() {
  kill -s ABRT "${MEMBERS_GROUP[$CARRIED_ENGINE]-none}" 2>/dev/null
}

# carried::stack NAME PLACE: stores the answer of one agent.
carried::stack() {
  CARRIED_STACK[$1]=$2
}

# carried::all_told: whether all agents whose ranks still run have answered.
carried::all_told() {
  local name
  ((${#CARRIED_STACK[@]} >= MEMBERS_RANKS_LEFT)) || return 1 # every answer comes here
  for name in "${MEMBERS_NAMES[@]}"; do
    if carried::_is "$name" && [[ -z ${MEMBERS_STATUS[$name]-}${CARRIED_STACK[$name]-} ]]; then
      return 1
    fi
  done
}
