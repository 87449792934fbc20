# shellcheck shell=bash
# The command line: the parser of option_table.sh's table.
#
# Everything in this file works with bash 3.2, because doctor.sh runs there, too.

OPTIONS=()           # NAME=VALUE, with underscores, as the user gave them; a flag is 1; the last one counts
ARGUMENTS=()         # positional
TRAINER_ARGUMENTS=() # the words after --
CLI_TABLE=''         # this script's lines of OPTION_TABLE
CLI_LAUNCHES=''      # not empty: this script launches, and the words after -- go to the trainer
CLI_TYPED=''         # the command line, in a form that a shell reads; empty: it is too long to be kept
CLI_HINT=''          # for a script that launches: the end of a message about a word too many
CLI_ARGUMENTS=''     # names of the positional arguments, such as "CONFIG"
CLI_PROGRAM=''       # the file whose functions say where a program begins, see cli::programs
CLI_OTHERS=''        # the files with options of other launchers, see cli::programs
CLI_TAKEN=1          # number of words of the option that was read last

readonly CLI_NUMBER='^[0-9]{1,8}$'

# cli::declare NAMES [WITHOUT]: sets this script's options: those in NAMES. If WITHOUT is given, the script launches and
# also has all options below the line ---, except those in WITHOUT. Names are separated by blanks.
cli::declare() {
  local line name shared='' IFS=$'\n'
  CLI_TABLE='' CLI_LAUNCHES=${2+yes} CLI_HINT=${2+$"; trainer arguments come after --"}
  set -f
  for line in $OPTION_TABLE; do # a here-string needs a temporary file, for which there may be no room
    name=" ${line%% *} "
    if [[ $line == --- ]]; then
      shared=$CLI_LAUNCHES
    elif [[ " $1 " == *"$name"* || (-n $shared && " $2 " != *"$name"*) ]]; then
      CLI_TABLE+=${CLI_TABLE:+$'\n'}$line
    fi
  done
  set +f
}

# cli::programs FILE [OTHERS]: a program may replace arguments. These functions say so:
#   FILE::takes WORD...                whether these words are a program with its own words
#   FILE::takes_after_dashes WORD...   the same for the words after --
#   FILE::arguments                    the names of the arguments that must be given, in REPLY
#   FILE::as_value                     which option has taken a program as its value, as the end of a message, in REPLY
#   FILE::instead_of NAME              what to do without the option NAME, which is unknown, in the same way
#   FILE::is_run WORD                  whether the word after --resume is its value; refuses one that may be or not
# OTHERS are files with the options of other launchers:
#   OTHER::takes WORD...               takes one with its values from the front, the number of words in REPLY; fails if it is none
cli::programs() {
  CLI_PROGRAM=$1 CLI_OTHERS=${2-}
}

# cli::parse ARGUMENT_NAMES WORD...: fills OPTIONS, ARGUMENTS and TRAINER_ARGUMENTS, for a script that launches also
# PROGRAM, and leaves in CLI_ARGUMENTS the names of the arguments that were given; ends the script for --help.
cli::parse() {
  CLI_ARGUMENTS=$1
  shift
  printf -v CLI_TYPED '%q ' "$0" "$@"
  CLI_TYPED=${CLI_TYPED% }
  ((${#CLI_TYPED} < 32768)) || CLI_TYPED='' # an argument of a program has bounds
  while (($#)); do
    CLI_TAKEN=1
    case $1 in
      --)
        [[ -n $CLI_LAUNCHES ]] || cli::usage $"unknown option --"
        "$CLI_PROGRAM"::takes_after_dashes "${@:2}" || TRAINER_ARGUMENTS=("${@:2}")
        break
        ;;
      -h) OPTIONS+=(help=1) ;;
      --?*) cli::option "$@" ;;
      -[0-9]*) ARGUMENTS+=("$1") ;; # a negative number; the plan checks it
      *)
        [[ -z $CLI_PROGRAM ]] || ! "$CLI_PROGRAM"::takes "$@" || break
        [[ $1 != -?* ]] || cli::_letter "$@"
        [[ $1 == -?* ]] || ARGUMENTS+=("$1")
        ;;
    esac
    shift "$CLI_TAKEN"
  done
  if cli::given help; then
    help::print "$CLI_TABLE"
    exit 0
  fi
  ! cli::given lang || cli::choice lang en
  cli::_check_count
}

# cli::value OPTION DEFAULT: what the user gave, else DEFAULT, in REPLY.
cli::value() {
  local word
  REPLY=$2
  for word in ${OPTIONS[@]+"${OPTIONS[@]}"}; do
    [[ $word != "$1="* ]] || REPLY=${word#*=}
  done
}

cli::given() {
  cli::value "$1" ''
  [[ -n $REPLY ]]
}

# cli::number OPTION DEFAULT: its value, a whole number, in REPLY.
cli::number() {
  cli::value "$@"
  [[ $REPLY =~ $CLI_NUMBER ]] || cli::usage $"--$1 $REPLY is not a whole number of at most 8 digits"
  REPLY=$((10#$REPLY))
}

# cli::choice OPTION DEFAULT: its value, one of those in the table, in REPLY.
cli::choice() {
  local choices choice
  cli::_find "$1"
  choices=${REPLY%% *}
  cli::value "$@"
  for choice in ${choices//|/ }; do
    [[ $REPLY != "$choice" ]] || return 0
  done
  choices=${choices//|/, }
  cli::usage $"--$1 $REPLY: write one of $choices"
}

# cli::usage TEXT: prints the mistake and how to get help; exit 2.
cli::usage() {
  log::one_line "$0"
  log::die 2 $"$1; see: bash $REPLY --help"
}

# cli::option WORD...: takes one option and its value from the front; the number of words in CLI_TAKEN.
cli::option() {
  local name=${1%%=*} takes
  name=${name#--}
  name=${name//-/_}
  cli::_find "$name"
  takes=${REPLY%% *}
  if [[ -n $takes ]]; then
    cli::value_of "$takes" "$@"
    OPTIONS+=("$name=$REPLY")
  elif ! cli::_is_of_others "$@"; then
    cli::_unknown "$name" "${1%%=*}"
  fi
}

# cli::value_of TAKES WORD...: the value of the option at the front, in REPLY; the number of words in CLI_TAKEN. TAKES
# is that of option_table.sh.
cli::value_of() {
  local -r takes=$1
  local typed=${2%%=*} value=''
  shift
  typed=${typed#--}
  option_table::typed "${typed//-/_}"
  typed=$REPLY
  CLI_TAKEN=1
  if [[ $takes == - ]]; then
    [[ $1 != *=* ]] || cli::usage $"$typed takes no value"
    value=1
  elif [[ $takes == '[RUN]' && $1 != *=* ]]; then
    value=newest
    if (($# > 1)) && "$CLI_PROGRAM"::is_run "$2"; then
      value=$2 CLI_TAKEN=2
    fi
  elif [[ $takes == '[True'* ]]; then
    cli::_said_of_flag "$@"
    value=$REPLY
  elif [[ $1 == *=* ]]; then
    value=${1#*=}
  elif (($# > 1)) && [[ $2 != --* || ($takes == WORDS && $2 != --) ]]; then
    value=$2
    CLI_TAKEN=2
  fi
  [[ -n $value ]] || cli::usage $"$typed needs a value: $typed $takes"
  [[ $takes != '[True'* || $value == 1 ]] || value=''
  REPLY=$value
}

# cli::_is_of_others WORD...: whether another launcher has this option; then it is taken, the number of words in CLI_TAKEN.
cli::_is_of_others() {
  local file
  for file in $CLI_OTHERS; do
    if "$file"::takes "$@"; then
      CLI_TAKEN=$REPLY
      return 0
    fi
  done
  return 1
}

# cli::knows OPTION: whether the script has it.
cli::knows() {
  cli::_find "$1"
  [[ -n $REPLY ]]
}

# cli::_said_of_flag WORD...: whether the flag at the front, which True or False may follow, is on, in REPLY: 1 or 0.
cli::_said_of_flag() {
  local word=True
  if [[ $1 == *=* ]]; then
    word=${1#*=}
  elif (($# > 1)); then
    case $2 in
      [Tt]rue | [Ff]alse) word=$2 CLI_TAKEN=2 ;;
    esac
  fi
  case $word in
    [Tt]rue) REPLY=1 ;;
    [Ff]alse) REPLY=0 ;;
    *)
      log::one_line "$word"
      set -- "${1%%=*}"
      cli::usage $"$1=$REPLY: write $1, $1=True or $1=False"
      ;;
  esac
}

# cli::_letter WORD...: an option of one letter, such as -n 4, is the option of that name.
cli::_letter() {
  cli::_find "${1#-}"
  if [[ $1 == -? && -n $REPLY ]]; then
    cli::option "-$1" "${@:2}"
  elif ! cli::_is_of_others "$@"; then
    cli::usage $"unknown option $1$CLI_HINT"
  fi
}

# cli::_find NAME: what the option takes and its meaning, in REPLY; nothing if there is no such option.
cli::_find() {
  option_table::find "$CLI_TABLE" "$1" || :
}

# cli::_unknown NAME WORD: refuses the option.
cli::_unknown() {
  REPLY=''
  [[ -z $CLI_PROGRAM ]] || "$CLI_PROGRAM"::instead_of "$1"
  cli::usage $"unknown option $2$REPLY"
}

# cli::_check_count: refuses a missing or an extra argument, by name.
cli::_check_count() {
  if [[ -n $CLI_PROGRAM ]]; then
    "$CLI_PROGRAM"::arguments
    CLI_ARGUMENTS=$REPLY
  fi
  # shellcheck disable=SC2206 # a list of names
  local -a names=($CLI_ARGUMENTS)
  if ((${#ARGUMENTS[@]} < ${#names[@]})); then
    [[ $CLI_ARGUMENTS != CONFIG ]] || names=($"PROGRAM or CONFIG")
    REPLY=''
    [[ -z $CLI_PROGRAM ]] || "$CLI_PROGRAM"::as_value
    name=${names[${#ARGUMENTS[@]}]}
    cli::usage $"$name is missing$REPLY"
  elif ((${#ARGUMENTS[@]} > ${#names[@]})); then
    log::one_line "${ARGUMENTS[${#names[@]}]}"
    cli::usage $"one argument too many: $REPLY$CLI_HINT"
  fi
}
