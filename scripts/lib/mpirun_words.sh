# shellcheck shell=bash
# Options of mpirun, as people type them: with one dash or two, for Open MPI 4 or 5. mpirun_table.sh says what each means.

MPIRUN_WORDS_PASSED=()            # words for mpirun
MPIRUN_WORDS_ONE_HOST=()          # what was typed and is for one host only
declare -A MPIRUN_WORDS_GIVEN=()  # option or parameter that may be passed once -> its value
declare -A MPIRUN_WORDS_EXPORT=() # variable that mpirun passes to all hosts, whatever its name -> 1

# mpirun_words::takes WORD...: takes one of them and its values from the front, the number of words in REPLY; fails if the
# first word is none.
mpirun_words::takes() {
  local -r typed=${1%%=*}
  local name=${typed#-} count kind
  local -a values=()
  name=${name#-}
  name=${name//-/_}
  option_table::find "$MPIRUN_TABLE" "$name" || return 1
  count=${REPLY%% *} kind=${REPLY#* }
  if [[ $1 == *=* && $count == 1 ]]; then
    values=("${1#*=}")
    set -- "$typed"
  else
    [[ $1 != *=* ]] || cli::usage $"$typed: write its values after it, without ="
    values=("${@:2:count}")
    set -- "${@:1:count+1}"
  fi
  mpirun_words::_check_values "$typed" "$count" ${values[@]+"${values[@]}"}
  mpirun_words::_means "$typed" "$kind" "$name" ${values[@]+"${values[@]}"}
  REPLY=$#
}

# mpirun_words::check: refuses what contradicts the other words. Call it when all words are read.
mpirun_words::check() {
  local word
  for word in ${MPIRUN_WORDS_GIVEN[bind_to]+bind_core bind_numa}; do
    [[ ${MPIRUN_WORDS_GIVEN[bind_to]} == none ]] || ! cli::given "$word" || cli::usage $"--$word and --bind-to say different things; give one of them"
  done
  [[ $CLI_ARGUMENTS == HOST* ]] || cli::given hosts || cli::given hostfile || return 0
  for word in ${MPIRUN_WORDS_ONE_HOST[@]+"${MPIRUN_WORDS_ONE_HOST[@]}"}; do
    cli::usage $"$word: ranks go host by host, as devices are numbered; write how many a host gets: HOST:8, or slots=8"
  done
}

# mpirun_words::given NAME: whether the user gives this option or parameter to mpirun.
mpirun_words::given() {
  [[ -n ${MPIRUN_WORDS_GIVEN[$1]+set} ]]
}

# mpirun_words::binds: whether the user's words say how ranks are bound; Open MPI 5 binds for :PE=N, and takes no --bind-to none then.
mpirun_words::binds() {
  mpirun_words::given bind_to || [[ ${MPIRUN_WORDS_GIVEN[map_by]-} == *:[pP][eE]=* ]]
}

# mpirun_words::_check_values TYPED COUNT VALUE...: refuses missing values, and what mpirun would take for an option.
mpirun_words::_check_values() {
  local -r typed=$1 count=$2
  local value
  shift 2
  if (($# != count)); then
    ((count > 1)) || cli::usage $"$typed needs 1 value"
    cli::usage $"$typed needs $count values"
  fi
  for value; do
    log::one_line "$value"
    [[ -n $value && ($value != -* || $value == @(-[0-9]*|* *)) ]] || cli::usage $"$typed: $REPLY is not a value"
    [[ $value != *[[:cntrl:]]* || $typed == @(-|--)x ]] || cli::usage $"$typed: $REPLY has a control character"
  done
}

# mpirun_words::_means TYPED KIND NAME [VALUE...]: does what the line of a table says, KIND.
mpirun_words::_means() {
  local -r typed=$1 text=${2#* } name=$3
  case ${2%% *} in
    =) cli::option "--$text${4+=$4}" ;;
    \~) option_table::find "$MPIRUN_TABLE" "$text" && mpirun_words::_means "$typed" "${REPLY#* }" "$text" "$4" ;;
    .) ;;
    ,) log::later $"note: $typed is not needed: $text" ;;
    \>) mpirun_words::_pass "$name" "${@:4}" ;;
    :) mpirun_words::_depends "$typed" "$text" "$name" "${@:4}" ;;
    no) cli::usage "$typed: $text" ;;
  esac
}

# mpirun_words::_pass NAME [VALUE...]: passes an option to mpirun, in the spelling that 4 and 5 have in common.
mpirun_words::_pass() {
  local -r name=${1//_/-}
  local dashes=--
  [[ $name != ? ]] || dashes=-
  MPIRUN_WORDS_PASSED+=("$dashes$name" "${@:2}")
}

# mpirun_words::_pass_once TYPED KEY NAME VALUE...: passes what mpirun takes only once.
mpirun_words::_pass_once() {
  ! mpirun_words::given "$2" || cli::usage $"$1 is there twice; give it once"
  MPIRUN_WORDS_GIVEN[$2]=$4
  mpirun_words::_pass "${@:3}"
}

# mpirun_words::_depends TYPED WAY NAME VALUE...: an option whose meaning depends on its value.
mpirun_words::_depends() {
  local -r typed=$1 way=$2 value=$4
  log::one_line "$value"
  local -r shown=$REPLY
  case $way in
    each)
      MPIRUN_WORDS_ONE_HOST+=("$typed $shown")
      cli::option "--n=$value"
      ;;
    hosts)
      if cli::given hosts || cli::given hostfile; then
        cli::usage $"$typed $shown: the hosts are named twice; name them once"
      fi
      if [[ $typed == *file ]]; then
        OPTIONS+=("hostfile=$value")
      else
        OPTIONS+=("hosts=$value")
      fi
      ;;
    variable) mpirun_words::_variable "$value" ;;
    parameter) mpirun_words::_parameter "$@" ;;
    once) mpirun_words::_pass_once "$typed" "${@:3:1}" "${@:3}" ;;
    order)
      [[ $value == slot?(:*) ]] || MPIRUN_WORDS_ONE_HOST+=("$typed $shown")
      mpirun_words::_pass_once "$typed" "${@:3:1}" "${@:3}"
      ;;
    folder) [[ $value -ef . ]] || cli::usage $"$typed $shown: ranks run in the folder where you type the command; type cd $shown before it" ;;
    input) [[ $value == none ]] || cli::usage $"$typed $shown: ranks have no standard input" ;;
    failure)
      case $value in
        0 | false | no) OPTIONS+=(keep_going=1) ;;
        1 | true | yes) ;;
        *) cli::usage $"$typed $shown: write 1, or 0 for --keep_going" ;;
      esac
      ;;
  esac
}

# mpirun_words::_parameter TYPED WAY NAME PARAMETER VALUE: -mca and its like.
mpirun_words::_parameter() {
  local -r typed="$1 $4"
  [[ $4 != *[!a-zA-Z0-9_]* ]] || cli::usage $"$typed: $4 is not the name of a parameter"
  if option_table::find "$MPIRUN_TABLE_OF_MCA" "$4"; then
    mpirun_words::_means "$typed" "$REPLY" "$3" "$5"
  else
    mpirun_words::_pass_once "$typed" "$4" "$3" "$4" "$5"
  fi
}

# mpirun_words::_variable WORD: -x NAME or NAME=VALUE. All that the user's shell exports reaches the ranks without it, but for
# what belongs to a host or a login. A value is for the ranks alone, whatever bash or our programs would make of it.
mpirun_words::_variable() {
  local -r name=${1%%=*}
  log::one_line "$name"
  [[ -n $name && $name != [0-9]* && $name != *[!a-zA-Z0-9_]* ]] || cli::usage $"-x $REPLY: write -x NAME or -x NAME=VALUE"
  if [[ $1 != *=* ]]; then
    [[ -n ${MPIRUN_WORDS_EXPORT[LAUNCH_KEPT_$name]-} || $(declare -p "LAUNCH_KEPT_$name" "$name" 2>/dev/null) == 'declare -x'* ]] \
      || log::later $"note: -x $name: your shell exports no such variable"
    MPIRUN_WORDS_EXPORT[$name]=1 MPIRUN_WORDS_EXPORT[LAUNCH_KEPT_$name]=1
  elif [[ $name == LAUNCH_* || " ${RANK_ENTRY_CONTRACT//$'\n'/ } " == *" $name "* ]]; then
    cli::usage $"-x $name=...: the launch itself sets $name"
  else
    own_shell::give "$name" "${1#*=}"
    MPIRUN_WORDS_EXPORT[LAUNCH_KEPT_$name]=1
    [[ $name != @(DATA_PATH|PYTHONPATH) ]] || export "$name=${1#*=}" # the plan looks there, too
  fi
}
