# shellcheck shell=bash
# The state of the job's members: the ranks (a rank's name is its number), MindSpore's scheduler ("scheduler"), and the
# process of an engine that starts ranks, such as "mpirun". Every file may read the tables; only this file writes them.

MEMBERS_NAMES=()                 # in the order of their start
MEMBERS_RANKS_LEFT=0             # ranks that have not ended
declare -A MEMBERS_LOG=()        # name -> its log
declare -A MEMBERS_MINDER=()     # name -> pid of its minder, if we started it
declare -A MEMBERS_GROUP=()      # name -> process group, while one of its processes lives
declare -A MEMBERS_PID=()        # name -> pid of its first process, on its host
declare -A MEMBERS_HOST=()       # name -> what its host calls itself, if an agent has told it
declare -A MEMBERS_BEGAN=()      # name -> uptime of its start, in hundredths of a second
declare -A MEMBERS_ENDED=()      # name -> uptime of its end
declare -A MEMBERS_STATUS=()     # name -> exit status, once it ended
declare -A MEMBERS_FAILED=()     # name -> 1: it failed before the job was stopped
declare -A MEMBERS_LOST=()       # name -> 1: its engine ended without a report about it
declare -A MEMBERS_LEAVING=()    # name -> 1: it ended, but processes of its group may live
declare -A MEMBERS_GONE_SINCE=() # name -> uptime since when no process of its group lives, if nobody reported its end

# members::clear: forgets all of them, for the next attempt.
members::clear() {
  MEMBERS_NAMES=() MEMBERS_RANKS_LEFT=0
  MEMBERS_LOG=() MEMBERS_MINDER=() MEMBERS_GROUP=() MEMBERS_BEGAN=() MEMBERS_ENDED=() MEMBERS_STATUS=()
  MEMBERS_FAILED=() MEMBERS_LOST=() MEMBERS_LEAVING=() MEMBERS_GONE_SINCE=() MEMBERS_HOST=() MEMBERS_PID=()
}

# members::add NAME LOG [MINDER]
members::add() {
  MEMBERS_NAMES+=("$1")
  MEMBERS_LOG[$1]=$2
  [[ -z ${3-} ]] || MEMBERS_MINDER[$1]=$3
  [[ $1 != [0-9]* ]] || MEMBERS_RANKS_LEFT=$((MEMBERS_RANKS_LEFT + 1))
}

# members::add_ranks RANK...: the same for ranks that an engine will start.
members::add_ranks() {
  MEMBERS_NAMES+=("$@")
  MEMBERS_RANKS_LEFT=$((MEMBERS_RANKS_LEFT + $#))
}

# members::began NAME [GROUP [HOST [PID]]]: the PID of a group that we can signal is that of the group.
members::began() {
  clock::now
  MEMBERS_BEGAN[$1]=$REPLY
  [[ -z ${2-} ]] || MEMBERS_GROUP[$1]=$2
  [[ -z ${3-} ]] || MEMBERS_HOST[$1]=$3
  [[ -z ${4:-${2-}} ]] || MEMBERS_PID[$1]=${4:-$2}
  [[ -z ${MEMBERS_STATUS[$1]-} ]] || MEMBERS_LEAVING[$1]=1 # its engine ended before it began
}

# members::all_began WORDS: "NAME PID HOST" of ranks that we cannot signal, one after the other. There may be thousands, so this
# calls no function for each; so does members::all_ended.
members::all_began() {
  local -i i
  local name
  set -f
  # shellcheck disable=SC2206 # a list of words
  local -a words=($1)
  set +f
  clock::now
  for ((i = 0; i + 2 < ${#words[@]}; i += 3)); do
    name=${words[i]}
    MEMBERS_BEGAN[$name]=$REPLY MEMBERS_PID[$name]=${words[i+1]} MEMBERS_HOST[$name]=${words[i+2]}
  done
}

# members::all_ended WORDS: "NAME STATUS" of members, one after the other. Records those that need no more than this, and
# leaves the others, in order, in REPLY: a status that is not 0, a group that may live. The first report counts.
members::all_ended() {
  local -i i=0 now ranks=0
  local name others=''
  # shellcheck disable=SC2206 # a list of numbers
  local -a words=($1)
  clock::now
  now=$REPLY
  for (( ; i + 1 < ${#words[@]}; i += 2)); do
    name=${words[i]}
    [[ -z ${MEMBERS_STATUS[$name]-} ]] || continue
    if [[ -n ${MEMBERS_GROUP[$name]-}${MEMBERS_MINDER[$name]-} || $name != [0-9]* || ($STOPPING_STATE == running && ${words[i+1]} != 0) ]]; then
      others+=" $name ${words[i+1]}"
    else
      MEMBERS_STATUS[$name]=${words[i+1]} MEMBERS_ENDED[$name]=$now ranks+=1
    fi
  done
  MEMBERS_RANKS_LEFT=$((MEMBERS_RANKS_LEFT - ranks))
  REPLY=$others
}

# members::ended NAME STATUS: the first report counts.
members::ended() {
  [[ -z ${MEMBERS_STATUS[$1]-} ]] || return 0
  clock::now
  MEMBERS_STATUS[$1]=$2 MEMBERS_ENDED[$1]=$REPLY
  unset "MEMBERS_GONE_SINCE[$1]"
  [[ -z ${MEMBERS_GROUP[$1]-} ]] || MEMBERS_LEAVING[$1]=1
  [[ $1 != [0-9]* ]] || MEMBERS_RANKS_LEFT=$((MEMBERS_RANKS_LEFT - 1))
}

# members::failed NAME: it has ended by a failure of its own.
members::failed() {
  MEMBERS_FAILED[$1]=1
}

# members::lost NAME: it counts as failed with code 255.
members::lost() {
  MEMBERS_LOST[$1]=1
  members::ended "$1" 255
}

# members::left NAME: no process of its group lives.
members::left() {
  unset "MEMBERS_GROUP[$1]" "MEMBERS_LEAVING[$1]"
}

# members::seems_gone NAME: no process of its group lives, and nobody has reported its end.
members::seems_gone() {
  clock::now
  : "${MEMBERS_GONE_SINCE[$1]:=$REPLY}"
}

# members::seconds NAME: how many seconds it ran, such as 1.5, in REPLY; - if it did not run.
members::seconds() {
  local -r began=${MEMBERS_BEGAN[$1]-} ended=${MEMBERS_ENDED[$1]-}
  REPLY=-
  if [[ -n $began && -n $ended ]]; then
    local -r tenths=$(((ended - began) / 10))
    REPLY=$((tenths / 10)).$((tenths % 10))
  fi
}

# members::any: whether a member has not ended, or a process of its group lives.
members::any() {
  ((${#MEMBERS_STATUS[@]} < ${#MEMBERS_NAMES[@]} || ${#MEMBERS_GROUP[@]} > 0))
}
