# shellcheck shell=bash
# The command line of msrun_launcher.sh: one quoted command, then the words of mindformers' script of this name. The
# words become our options, and the plan splits the command.

quoted::takes() {
  return 1 # a word never begins a program: all words of the command are in its quotes, and options may follow it
}

quoted::as_value() {
  program::as_value
}

quoted::instead_of() {
  program::instead_of "$1"
}

quoted::is_run() {
  program::is_run "$1"
}

quoted::takes_after_dashes() {
  ARGUMENTS+=("$@")
}

# quoted::arguments: takes the command and the words after it; COMMAND in REPLY if it is missing.
quoted::arguments() {
  local name join=False
  local -a names=()
  REPLY=COMMAND
  set -- ${ARGUMENTS[@]+"${ARGUMENTS[@]}"}
  case $# in
    0) return ;;
    1) ;;
    2) names=(worker_num) ;;
    6) names=(worker_num master_port log_dir join cluster_time_out) ;;
    9) names=(worker_num local_worker_num master_addr master_port node_rank log_dir join cluster_time_out) ;;
    *)
      shift
      cli::usage $"$# words after the command; write none, WORKER_NUM, 5 or 8"
      ;;
  esac
  program::is "$1"
  if (($# == 9)) && [[ $2 == "$3" ]]; then
    log::later $"note: this host has all $2 ranks: MASTER_ADDR and NODE_RANK are not used"
    names[2]=none names[4]=none
  fi
  for name in ${names[@]+"${names[@]}"}; do
    shift
    case $name in
      none) ;;
      join) join=$1 ;;
      *) quoted::_option "$name" "$1" ;;
    esac
  done
  quoted::_join "$join"
  export MS_TOPO_TIMEOUT=${MS_TOPO_TIMEOUT-7200} # as mindformers' script
  ARGUMENTS=() REPLY=''
}

# quoted::_option NAME VALUE: the option that a word stands for.
quoted::_option() {
  cli::value "$1" "$2"
  [[ $REPLY == "$2" ]] || cli::usage $"--$1 $REPLY and the word $2 after the command contradict each other; give one of them"
  cli::option "--$1=$2"
}

# quoted::_join WORD: JOIN.
quoted::_join() {
  case $1 in
    True) ;;
    False) log::later $"note: the launch waits for its ranks, also with JOIN False; to go on at once, end the command line with &" ;;
    *)
      log::one_line "$1"
      cli::usage $"JOIN $REPLY: write True or False"
      ;;
  esac
}
