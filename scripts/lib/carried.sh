# shellcheck shell=bash
# Members that an engine started: its process is the member that we start and stop; of the ranks we hear from
# their agents (rank_agent.sh), through the engine (engines/relay.sh) or, on this host, on the bus.

CARRIED_ENGINE=''           # the name of the engine's member; empty: we start the ranks ourselves
CARRIED_WAY=0               # seconds that an order to the ranks may take, where it goes through the engine
CARRIED_ORDERED_AT=0        # uptime, in hundredths of a second, when the engine was last told to stop
declare -A CARRIED_STACK=() # name -> where the rank is, from its agent

# carried::by NAME [SECONDS]: the engine's member starts the ranks; orders go through it, and take SECONDS at most.
carried::by() {
  CARRIED_ENGINE=$1 CARRIED_WAY=${2-0} CARRIED_STACK=()
}

# carried::_is NAME: whether the engine started it.
carried::_is() {
  [[ -z ${MEMBERS_MINDER[$1]-} ]]
}

# carried::engine_ended: members that the engine has not told the end of, and that we cannot see, are lost; the
# first of them in REPLY, or nothing.
carried::engine_ended() {
  local name first=''
  for name in "${MEMBERS_NAMES[@]}"; do
    if carried::_is "$name" && [[ -z ${MEMBERS_STATUS[$name]-} && -z ${MEMBERS_GROUP[$name]-} ]]; then
      members::lost "$name"
      first=${first:-$name}
    fi
  done
  REPLY=$first
}

# carried::is_gone NAME: whether a rank of this host has ended while all that could tell was killed. What lives
# tells within moments.
carried::is_gone() {
  local -r group=${MEMBERS_GROUP[$1]-}
  if [[ -z $group ]] || processes::group_lives "$group"; then
    return 1
  fi
  members::seems_gone "$1"
  clock::reached "$((MEMBERS_GONE_SINCE[$1] + 200))"
}

# carried::stop: remembers when the engine was told to stop, which the supervisor does.
carried::stop() {
  clock::now
  CARRIED_ORDERED_AT=$REPLY
}

# carried::repeat_order: tells the engine to stop once a second. An order has a long way, through the relay, the
# engine and the ranks' agents; it may come before an agent can take it, and bash has lost one now and then. Who has
# it already does not mind.
carried::repeat_order() {
  local -r group=${MEMBERS_GROUP[${CARRIED_ENGINE:-none}]-}
  if [[ -n $group ]] && ((CARRIED_WAY)) && clock::reached "$((CARRIED_ORDERED_AT + 100))"; then
    carried::stop
    kill -s TERM -- "-$group" 2>/dev/null || :
  fi
}

# carried::ask_stacks: has every agent tell where its rank is; fails if the engine is gone.
carried::ask_stacks() {
  kill -s ABRT "${MEMBERS_GROUP[$CARRIED_ENGINE]-none}" 2>/dev/null
}

# carried::stack NAME PLACE: the answer of one.
carried::stack() {
  CARRIED_STACK[$1]=$2
}

# carried::all_told: whether all have answered that still run.
carried::all_told() {
  local name
  for name in "${MEMBERS_NAMES[@]}"; do
    if carried::_is "$name" && [[ -z ${MEMBERS_STATUS[$name]-}${CARRIED_STACK[$name]-} ]]; then
      return 1
    fi
  done
}
