# shellcheck shell=bash
# Options of torchrun and msrun that our scripts do not have: which of ours means the same, or why none is needed.

# Name, value ("-": none; "[True|False]": maybe one of these), then what it means here:
#   = OPTION...   the same as the first of our OPTIONs that the script has
#   1 VALUE       this VALUE is that of a job on one host
#   . TEXT        it is not needed, because of TEXT
#   @ VARIABLE    the value of this variable of MindSpore
readonly SYNONYMS='nproc N = n local_worker_num ntasks_per_node
nproc_per_node N = n local_worker_num ntasks_per_node
worker_num N = n
local_worker_num N = n
nnodes N 1 1
node_rank N 1 0
rank_table_file FILE = rank_table
master_addr HOST . '$"ranks of one host need no address"'
master_port PORT . '$"the launch takes a free port"'
join [True|False] . '$"the launch always waits for its ranks"'
standalone - . '$"the launch needs no rendezvous server"'
rdzv_backend NAME . '$"MindSpore has a scheduler of its own"'
rdzv_endpoint HOST . '$"MindSpore has a scheduler of its own"'
rdzv_id NAME . '$"MindSpore has a scheduler of its own"'
rdzv_conf WORDS . '$"MindSpore has a scheduler of its own"'
cluster_time_out SECONDS @ MS_TOPO_TIMEOUT'

# synonyms::takes WORD...: takes one of them and its value from the front, the number of words in REPLY; fails if the
# first word is none.
synonyms::takes() {
  local typed=${1%%=*} line kind meaning
  typed=${typed#--}
  typed=${typed//-/_}
  [[ $1 == --* ]] && option_table::find "$SYNONYMS" "$typed" || return 1
  line=$REPLY
  meaning=${line#* } kind=${meaning%% *}
  cli::value_of "${line%% *}" "$@"
  local -r taken=$CLI_TAKEN
  synonyms::_apply "--$typed" "$REPLY" "$kind" "${meaning#* }"
  REPLY=$taken
}

# synonyms::_apply TYPED VALUE KIND MEANING: does what the option means.
synonyms::_apply() {
  local own typed
  local -r hosts=$"several hosts: scripts/run_msrun.sh on each of them, or scripts/run_cluster.sh --hostfile FILE once"
  log::one_line "$2"
  typed="$1 $REPLY"
  case $3 in
    =)
      for own in $4; do
        ! cli::knows "$own" || break
      done
      cli::knows "$own" || cli::usage $"$typed: $LOG_NAME has no such option; any number of ranks: scripts/launch.sh -n"
      cli::value "$own" "$2"
      [[ $REPLY == "$2" ]] || cli::usage $"$typed: another option says $REPLY; $hosts"
      cli::option "--$own=$2"
      ;;
    1) [[ $2 == "$4" ]] || cli::usage $"$typed: this host alone is $1 $4; $hosts" ;;
    @)
      [[ $2 =~ $CLI_NUMBER ]] || cli::usage $"$typed is not a whole number of at most 8 digits"
      export "$4=$2"
      ;;
    *)
      typed=${typed%% *}
      log::later $"note: $typed is not needed: $4"
      ;;
  esac
}
