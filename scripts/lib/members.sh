# shellcheck shell=bash
# The state of the job's members: the ranks (a rank's name is its number), MindSpore's scheduler ("scheduler"), and the
# process of an engine that starts ranks, such as "mpirun". Every file may read the tables; only this file writes them.

MEMBERS_NAMES=()                 # in the order of their start
MEMBERS_RANKS_LEFT=0             # ranks that have not ended
declare -A MEMBERS_LOG=()        # name -> its log
declare -A MEMBERS_MINDER=()     # name -> pid of its minder, if we started it
declare -A MEMBERS_GROUP=()      # name -> process group, while one of its processes lives
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
  MEMBERS_FAILED=() MEMBERS_LOST=() MEMBERS_LEAVING=() MEMBERS_GONE_SINCE=() MEMBERS_HOST=()
}

# members::add NAME LOG [MINDER]
members::add() {
  MEMBERS_NAMES+=("$1")
  MEMBERS_LOG[$1]=$2
  [[ -z ${3-} ]] || MEMBERS_MINDER[$1]=$3
  [[ $1 != [0-9]* ]] || MEMBERS_RANKS_LEFT=$((MEMBERS_RANKS_LEFT + 1))
}

# members::began NAME [GROUP [HOST]]
members::began() {
  clock::now
  MEMBERS_BEGAN[$1]=$REPLY
  [[ -z ${2-} ]] || MEMBERS_GROUP[$1]=$2
  [[ -z ${3-} ]] || MEMBERS_HOST[$1]=$3
  [[ -z ${MEMBERS_STATUS[$1]-} ]] || MEMBERS_LEAVING[$1]=1 # its engine ended before it began
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
