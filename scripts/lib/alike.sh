# shellcheck shell=bash
# Ranks that have something in common, such as the way in which they ended. A job may have 65,536 ranks, and every third
# of them may be special: what people read has at most ALIKE_RANGES ranges of numbers, and the number of all.

readonly ALIKE_RANGES=20
ALIKE_KEYS=()                # what they have in common, in the order in which it came
declare -A ALIKE_AT=()       # key -> its place there
ALIKE_COUNT=()               # number of its ranks
ALIKE_TEXT=()                # their ranges: ",0-3,7"
ALIKE_LEFT=()                # how many more ranges TEXT may get
ALIKE_OMITTED=()             # ranks that are not in TEXT
ALIKE_FIRST=() ALIKE_LAST=() # the range that is not in TEXT yet

# alike::clear: forgets all of them.
alike::clear() {
  ALIKE_KEYS=() ALIKE_AT=() ALIKE_COUNT=() ALIKE_TEXT=() ALIKE_LEFT=() ALIKE_OMITTED=() ALIKE_FIRST=() ALIKE_LAST=()
}

# alike::add KEY RANK: the RANK has KEY in common with others. Ranks of one KEY come in ascending order.
alike::add() {
  local at=${ALIKE_AT[$1]-}
  if [[ -z $at ]]; then
    at=${#ALIKE_KEYS[@]}
    ALIKE_KEYS+=("$1") ALIKE_AT[$1]=$at
    ALIKE_COUNT[at]=1 ALIKE_TEXT[at]='' ALIKE_LEFT[at]=$ALIKE_RANGES ALIKE_OMITTED[at]=0
    ALIKE_FIRST[at]=$2 ALIKE_LAST[at]=$2
    return 0
  fi
  ALIKE_COUNT[at]=$((ALIKE_COUNT[at] + 1))
  if ((ALIKE_LAST[at] + 1 != $2)); then
    alike::_end_range "$at"
    ALIKE_FIRST[at]=$2
  fi
  ALIKE_LAST[at]=$2
}

alike::_end_range() {
  local -i at=$1
  local -ri first=${ALIKE_FIRST[at]} last=${ALIKE_LAST[at]}
  if ((ALIKE_LEFT[at] == 0)); then
    ALIKE_OMITTED[at]=$((ALIKE_OMITTED[at] + last - first + 1))
    return 0
  fi
  ALIKE_LEFT[at]=$((ALIKE_LEFT[at] - 1))
  case $((last - first)) in
    0) ALIKE_TEXT[at]+=",$last" ;;
    1) ALIKE_TEXT[at]+=",$first,$last" ;;
    *) ALIKE_TEXT[at]+=",$first-$last" ;;
  esac
}

# alike::named AT: "rank 3", "ranks 0-5,7", "ranks 0,2,4 and 5 more", in REPLY. Call it once, when all are there.
alike::named() {
  local omitted
  alike::_end_range "$1"
  omitted=${ALIKE_OMITTED[$1]}
  log::noun rank "${ALIKE_COUNT[$1]}"
  REPLY+=" ${ALIKE_TEXT[$1]#,}"
  ((omitted == 0)) || REPLY=$"$REPLY and $omitted more"
}
