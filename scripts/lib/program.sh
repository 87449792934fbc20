# shellcheck shell=bash
# A program on the command line: where it begins, and which of the script's own arguments it makes needless.
#
# The words of a launch are: options, the script's arguments, then nothing, -- and words for the trainer, or a program. A
# program takes all words after it, unchanged. What a word is follows from the word and from the file of that name:
#
#   *.yaml *.yml            a config
#   *.py *.sh, -m MODULE    a program
#   a file with the run bit, or a name on PATH: a program in the place of CONFIG, after the last argument, and, if it is
#                              neither a folder nor a number, in the place of the last argument (DATA_PATH may be missing)
#   another file in the place of CONFIG: refused, with both spellings

PROGRAM=() # the program and its words; empty: a trainer with a config, or --pytest

# program::takes WORD...: if the first WORD begins a program, keeps all of them in PROGRAM.
program::takes() {
  # shellcheck disable=SC2206 # a list of names
  local -a names=($CLI_ARGUMENTS)
  local place
  ! program::_has_hosts || names=()
  [[ $CLI_ARGUMENTS != CONFIG || ${#ARGUMENTS[@]} -eq 0 ]] || return # the config is there
  place=${names[${#ARGUMENTS[@]}]-}
  case $1 in
    -m | *.py | *.sh) ;;
    -* | *.yaml | *.yml) return 1 ;;
    *)
      [[ -z $place || $place == CONFIG ]] || { ((${#ARGUMENTS[@]} == ${#names[@]} - 1)) && program::_replaces_argument "$1"; } || return
      if [[ ! -f $1 || ! -x $1 ]] && { [[ -f $1 || $1 == */* ]] || ! type -P -- "$1" >/dev/null; }; then
        [[ $place != CONFIG || ! -f $1 ]] || program::_unclear "$1"
        return 1
      fi
      ;;
  esac
  ! program::_is_named || cli::usage $"${1##*/} is a program, and --$REPLY names another one; give one of them"
  program::is "$@"
}

# program::is WORD...: keeps the words of the program.
program::is() {
  PROGRAM=("$@")
}

# program::takes_after_dashes [WORD...]: the same for the words after --, which are a program where no trainer is named.
program::takes_after_dashes() {
  (($#)) && [[ $CLI_ARGUMENTS == CONFIG && ${#ARGUMENTS[@]} -eq 0 ]] && ! program::_is_named && program::takes "$@"
}

# program::arguments: CLI_ARGUMENTS without what the user has left out and may: CONFIG if an option or a program replaces
# it, DATA_PATH before a program or with --pytest, HOSTS for this host, and HOSTS or HOSTFILE if an option names hosts.
program::arguments() {
  local -r given=${#ARGUMENTS[@]}
  # shellcheck disable=SC2206 # a list of names
  local -a names=($CLI_ARGUMENTS)
  if [[ $CLI_ARGUMENTS == CONFIG && $given -eq 0 ]] && { ((${#PROGRAM[@]})) || program::_is_named; }; then
    REPLY=''
  elif program::_has_hosts; then
    ((given == 0)) || cli::usage $"$CLI_ARGUMENTS ${ARGUMENTS[0]}: an option names hosts, too; name them once"
    REPLY=''
  elif [[ $CLI_ARGUMENTS == HOSTS && $given -eq 0 ]]; then
    log::later $"note: no HOSTS are named: all ranks run on this host"
    REPLY=''
  elif [[ $CLI_ARGUMENTS == CONFIG ]] && cli::given config; then
    cli::usage $"--config and the argument CONFIG name two configs; give one of them"
  elif ((given == ${#names[@]} - 1)) && { ((${#PROGRAM[@]})) || cli::given pytest; } && ! program::_has_data_path; then
    REPLY=${CLI_ARGUMENTS#DATA_PATH}
  else
    REPLY=$CLI_ARGUMENTS
  fi
}

# program::as_value: where an option has taken what looks like a program or a config, the words that say so, in REPLY.
program::as_value() {
  local word name
  REPLY=''
  for word in ${OPTIONS[@]+"${OPTIONS[@]}"}; do
    name=${word%%=*}
    if [[ $word == *.@(py|sh|yaml|yml) && $name != @(config|train_script|pytest|rank_table|hostfile|hccn_conf|restart_args) ]]; then
      log::one_line "${word#*=}"
      REPLY=$"; --$name took $REPLY as its value"
    fi
  done
}

# program::instead_of NAME: for the rank table's options, the message names the alternative.
program::instead_of() {
  local hint=''
  if [[ $1 == rank_table || $1 == hccn_conf ]]; then
    hint=$": $LOG_NAME needs no rank table, its ranks find each other without; with a rank table: scripts/ascend8p.sh and its like, on several hosts scripts/run_cluster.sh"
    [[ $CLI_ARGUMENTS != *RANK_TABLE_FILE* ]] || hint=$": the rank table is the argument RANK_TABLE_FILE, or with --hostfile the option --rank_table"
  fi
  program::as_value
  REPLY=$hint$REPLY
}

# program::is_run WORD: whether the word after --resume is the folder of a run, or of its checkpoints. Refuses a word
# that is not an argument either: nobody should train anew, or from another run, because of a mistyped name.
program::is_run() {
  [[ ! -e $1/launch.json && ! -d $1/rank_0 ]] || return 0
  case $1 in
    -* | *.py | *.sh | *.yaml | *.yml) return 1 ;;
  esac
  [[ ! -f $1 ]] || return 1
  if [[ $CLI_ARGUMENTS != CONFIG ]]; then # DATA_PATH, HOSTS or a number
    [[ $1 == */* && ! -d $1 ]] || return 1
  elif [[ $1 != */* && ! -d $1 && ${#ARGUMENTS[@]} -eq 0 ]] && type -P -- "$1" >/dev/null; then
    return 1
  fi
  log::one_line "$1"
  cli::usage $"--resume $REPLY: no run has this folder (launch.json is not in it); another run: --resume=FOLDER; the newest run, and $REPLY as an argument: --resume=newest $REPLY"
}

# program::_is_named: whether an option says what to start; its name in REPLY.
program::_is_named() {
  local name
  for name in config train_script pytest; do
    if cli::given "$name"; then
      REPLY=$name
      return 0
    fi
  done
  return 1
}

# program::_has_data_path: whether the first argument is a folder and not a number: then another argument is missing.
program::_has_data_path() {
  [[ -d ${ARGUMENTS[0]-} && ${ARGUMENTS[0]} == *[!0-9]* ]]
}

# program::_has_hosts: whether the script takes hosts as its argument, and an option of mpirun names them.
program::_has_hosts() {
  [[ $CLI_ARGUMENTS == HOST* ]] && { cli::given hosts || cli::given hostfile; }
}

# program::_replaces_argument WORD: whether WORD, where the last argument is expected, can only be a program.
program::_replaces_argument() {
  [[ $CLI_ARGUMENTS == DATA_PATH* && ! -d $1 && ! $1 =~ $CLI_NUMBER || $CLI_ARGUMENTS == HOSTS && $1 != *:* ]]
}

# program::_unclear WORD: refuses a file that may be either.
program::_unclear() {
  log::one_line "$1"
  cli::usage $"$REPLY: a config or a program? A config: --config $REPLY; a program: python $REPLY, or give the file the run bit"
}
