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
master_addr HOST . ranks of one host need no address
master_port PORT . the launch takes a free port
join [True|False] . the launch always waits for its ranks
standalone - . the launch needs no rendezvous server
rdzv_backend NAME . MindSpore has a scheduler of its own
rdzv_endpoint HOST . MindSpore has a scheduler of its own
rdzv_id NAME . MindSpore has a scheduler of its own
rdzv_conf WORDS . MindSpore has a scheduler of its own
cluster_time_out SECONDS @ MS_TOPO_TIMEOUT'

# synonyms::find NAME: value and meaning of the option, in REPLY; empty if it is none of them.
synonyms::find() {
  local -r table=$'\n'$SYNONYMS$'\n' start=$'\n'"$1 "
  REPLY=''
  [[ $table == *"$start"* ]] || return 0
  REPLY=${table#*"$start"}
  REPLY=${REPLY%%$'\n'*}
}
