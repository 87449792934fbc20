# shellcheck shell=bash
# The one place that knows a rank's environment: the first thing that runs in every rank.
#
# A rank gets the job-wide variables from the launcher's plan, and from its engine
#   LAUNCH_DEVICES     devices of this host's ranks, in order of their local rank: "4 5 6 7"
#   LAUNCH_JOB         the job's name; it stays in the environment and marks every process of the job
#   LAUNCH_SIZES       ranks of the job's hosts, in order: "8x2 4x1" is two hosts with 8 ranks, then one with 4
#   LAUNCH_RANK, LAUNCH_LOCAL_RANK   its numbers; under mpirun, srun and msrun rank_entry::place finds them
#   LAUNCH_UMASK       the umask of its files
#   LAUNCH_LOGS        the folder of this attempt's logs
#   LAUNCH_PLOGS       where CANN logs, see plogs.sh; empty: the rank does not use it
#   LAUNCH_BIND        if ranks have cores of their own: how, the device target, and the cores of each rank on the
#                      launcher's host: "core CPU 0=0,1 1=2,3"
# An agent (rank_agent.sh) also gets
#   LAUNCH_SECRET      begins each line for the launcher on stdout; only this launch knows it. Not set: no launcher
#                      reads the lines, and the agent becomes the trainer
#   LAUNCH_BUS, LAUNCH_LIFELINE   the supervisor's own pipes, used instead of stdout for ranks of this host
#   LAUNCH_CONTROL     stdin: orders arrive as lines on stdin (srun); else as signals: URG, ABRT, USR1, USR2 (mpirun)
#   LAUNCH_GRACE       seconds between SIGTERM and SIGKILL
#   LAUNCH_PATIENCE    upper limit of LAUNCH_GRACE when the engine itself ends the job; not set: no limit
#   LAUNCH_FOLDER, LAUNCH_HOST   where the command was typed
#   LAUNCH_KEEPS_GOING  not empty: --keep_going, an agent whose trainer has failed waits for no order
#   LAUNCH_HANG        --hang_timeout, 0: none. Agents need it where the launcher cannot see the log
#   LAUNCH_PYTHON      the launcher's Python: the program need not be one
#   LAUNCH_LINKS       a folder that gets links to the ranks' logs, in Open MPI's layout
# It sets the other variables of docs/environment.md and becomes the trainer.

# Every variable of the contract. Those that the plan does not set are removed: the caller's shell may have them from an
# earlier job. MINDSPORE_HCCL_CONFIG_PATH would override RANK_TABLE_FILE, and MS_SERVER_NUM would change the cluster.
readonly RANK_ENTRY_CONTRACT='RANK_ID RANK_SIZE DEVICE_ID RANK_TABLE_FILE MS_WORKER_NUM
MS_SCHED_HOST MS_SCHED_PORT MS_ROLE MS_NODE_ID LOG_DIR MINDSPORE_HCCL_CONFIG_PATH MS_SERVER_NUM'
# Other names of the same facts, which public trainers read. MindSpore itself reads only LOCAL_RANK, and only before init.
# So a value of the user counts. The plan adds those that all ranks share: WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
readonly RANK_ENTRY_DEFAULTS='RANK LOCAL_RANK LOCAL_WORLD_SIZE SERVER_ID DEVICE_NUM'

RANK_ENTRY_BATCH='' # not empty: this shell has the batch policy, for the ranks that it starts

# rank_entry::job_environment NAME=VALUE...: exports the job-wide variables in the launcher, and prints which variables
# of the caller's shell they override.
rank_entry::job_environment() {
  local name assignment overridden=''
  local -A planned=()
  for assignment; do
    planned[${assignment%%=*}]=${assignment#*=}
  done
  for name in $RANK_ENTRY_CONTRACT; do
    planned[$name]=${planned[$name]-}
    # A path may be the same file as the plan's, which is absolute.
    if [[ -n ${!name+set} && ${!name} != "${planned[$name]}" && ! ($name == *_FILE && ${!name} -ef ${planned[$name]}) ]]; then
      log::one_line "${!name}"
      overridden+="${overridden:+, }$name=$REPLY"
    fi
    unset "$name"
  done
  [[ -z $overridden ]] || log::say $"note: $overridden from your shell is not used; the launch sets its own"
  rank_entry::_warn_of_kept_numbers "${planned[RANK_SIZE]}"
  for assignment; do
    export "${assignment?}"
  done
}

# rank_entry::_warn_of_kept_numbers RANKS: a number of the user counts, also another one than that of RANKS, or one that
# differs from rank to rank.
rank_entry::_warn_of_kept_numbers() {
  local name same=''
  if [[ ${WORLD_SIZE-$1} != "$1" ]]; then
    log::one_line "$WORLD_SIZE"
    log::say $"note: WORLD_SIZE=$REPLY from your shell is what the ranks get, but the job has $1; unset it, and they get the right number"
  fi
  (($1 > 1)) || return 0
  for name in RANK LOCAL_RANK; do
    if [[ -n ${!name+set} ]]; then
      log::one_line "${!name}"
      same+="${same:+, }$name=$REPLY"
    fi
  done
  [[ -z $same ]] || log::say $"note: $same from your shell is what all $1 ranks get; unset it, and each rank gets its own number"
}

# rank_entry::agent_environment ENGINE: exports what the engine's agents (rank_agent.sh) need to know.
readonly RANK_ENTRY_FOR_AGENTS='LAUNCH_ENGINE LAUNCH_DEVICES LAUNCH_SIZES LAUNCH_BIND LAUNCH_FOLDER LAUNCH_HOST LAUNCH_EXPORTS LAUNCH_LOGS LAUNCH_PLOGS LAUNCH_LINKS LAUNCH_UMASK LAUNCH_HANG LAUNCH_PYTHON'
rank_entry::agent_environment() {
  local assignment
  rank_entry::_forget # what the user's shell may have of these names
  LAUNCH_ENGINE=$1 LAUNCH_DEVICES=${PLAN_ENGINE[devices]} LAUNCH_SIZES=${PLAN_ENGINE[sizes]}
  LAUNCH_BIND=$PLAN_BIND LAUNCH_FOLDER=$PWD LAUNCH_EXPORTS=''
  LAUNCH_LINKS=${PLAN_ENGINE[logs]-}
  python::path
  LAUNCH_PYTHON=$REPLY
  system::umask
  LAUNCH_LOGS=$PLAN_LOG_DIR LAUNCH_PLOGS=$PLAN_PLOGS LAUNCH_UMASK=$REPLY LAUNCH_HANG=$LIMITS_HANG
  read -r LAUNCH_HOST </proc/sys/kernel/hostname
  for assignment in "${PLAN_EXPORTS[@]}"; do
    LAUNCH_EXPORTS+="${LAUNCH_EXPORTS:+ }${assignment%%=*}"
  done
  # shellcheck disable=SC2086,SC2163 # a list of names
  export $RANK_ENTRY_FOR_AGENTS
}

# rank_entry::place: sets the rank's numbers from the variables of its engine; fails if one is not a number. LAUNCH_ENGINE
# names the engine, because under salloc a rank of mpirun also has srun's variables, from another step.
rank_entry::place() {
  local name
  case $LAUNCH_ENGINE in
    mpirun) LAUNCH_RANK=$OMPI_COMM_WORLD_RANK LAUNCH_LOCAL_RANK=$OMPI_COMM_WORLD_LOCAL_RANK ;;
    srun) LAUNCH_RANK=$SLURM_PROCID LAUNCH_LOCAL_RANK=$SLURM_LOCALID ;;
    msrun)
      if [[ $MS_ROLE == MS_SCHED ]]; then
        LAUNCH_RANK=scheduler LAUNCH_LOCAL_RANK=0
      else
        LAUNCH_RANK=$MS_NODE_ID LAUNCH_LOCAL_RANK=$DEVICE_ID
      fi
      ;;
  esac
  for name in $RANK_ENTRY_CONTRACT; do # a remote shell's start-up files may set some of them
    [[ " $LAUNCH_EXPORTS " == *" $name "* ]] || unset "$name"
  done
  [[ ${LAUNCH_RANK#scheduler}$LAUNCH_LOCAL_RANK != *[!0-9]* && -n $LAUNCH_RANK && -n $LAUNCH_LOCAL_RANK ]]
}

# rank_entry::rank: exports what differs from rank to rank.
rank_entry::rank() {
  local -a devices
  # shellcheck disable=SC2206 # a list of numbers; `read` from <<< would need a temporary file
  devices=($LAUNCH_DEVICES)
  export RANK_ID=$LAUNCH_RANK DEVICE_ID=${devices[LAUNCH_LOCAL_RANK]}
  if [[ -n ${MS_WORKER_NUM-} ]]; then # MindSpore's dynamic cluster; a numeric MS_NODE_ID fixes the rank
    export MS_ROLE=MS_WORKER MS_NODE_ID=$RANK_ID
  fi
  rank_entry::_defaults
  # On import, MindSpore 2.10 replaces DEVICE_ID by this variable: a rank on device 4 would take device 0.
  [[ -z ${OMPI_COMM_WORLD_LOCAL_RANK-} || ${LAUNCH_ENGINE-} != mpirun ]] || export OMPI_COMM_WORLD_LOCAL_RANK=$DEVICE_ID
  export LAUNCH_JOB
  rank_entry::_forget
}

# Sets the variables that the user has not set. The rank's host, and the number of ranks on it, follow from LAUNCH_SIZES.
rank_entry::_defaults() {
  local group each hosts rank=$RANK_ID host=0
  for group in $LAUNCH_SIZES; do # hosts of one size are one group, so there are few
    each=${group%x*} hosts=${group#*x}
    ((rank >= each * hosts)) || break
    rank=$((rank - each * hosts)) host=$((host + hosts))
  done
  host=$((host + rank / each))
  : "${RANK=$RANK_ID}" "${LOCAL_RANK=$LAUNCH_LOCAL_RANK}" "${LOCAL_WORLD_SIZE=$each}" "${SERVER_ID=$host}" "${DEVICE_NUM=$each}"
  # shellcheck disable=SC2086,SC2163 # a list of names
  export $RANK_ENTRY_DEFAULTS
}

# Removes the variables between launcher and agent, which are not for the trainer.
rank_entry::_forget() {
  unset LAUNCH_DEVICES LAUNCH_SIZES LAUNCH_BIND LAUNCH_RANK LAUNCH_LOCAL_RANK LAUNCH_ENGINE LAUNCH_EXPORTS LAUNCH_SECRET LAUNCH_BUS \
    LAUNCH_LIFELINE LAUNCH_CONTROL LAUNCH_GRACE LAUNCH_PATIENCE LAUNCH_HOST LAUNCH_FOLDER LAUNCH_LINKS LAUNCH_HANG \
    LAUNCH_PYTHON LAUNCH_KEEPS_GOING LAUNCH_PLOGS
}

# rank_entry::scheduler: the environment of MindSpore's scheduler. If it saw the rank table, it would take the ranks'
# numbers from it.
rank_entry::scheduler() {
  export MS_ROLE=MS_SCHED LAUNCH_JOB
  unset RANK_TABLE_FILE
  rank_entry::_forget
}

# rank_entry::become rank|scheduler COMMAND...: this process becomes the trainer or the scheduler.
rank_entry::become() {
  [[ $1 != rank || -z ${LAUNCH_BIND-} ]] || rank_entry::_bind
  [[ $1 != rank ]] || plogs::open "$LAUNCH_RANK"
  rank_entry::"$1"
  if [[ $1 == rank ]]; then
    rank_entry::_keep "rank_$RANK_ID.env"
    rank_entry::_wake_late
  else
    rank_entry::_keep scheduler.env
  fi
  shift
  own_shell::leave "$@"
}

# rank_entry::cores: the cores of this rank, in REPLY: "0,1,4,5"; empty if it has none of its own.
rank_entry::cores() {
  local -a words devices
  local word ranks
  # shellcheck disable=SC2206 # lists of words
  words=($LAUNCH_BIND) devices=($LAUNCH_DEVICES)
  REPLY=''
  for word in ${words[@]+"${words[@]}"}; do
    [[ $word != "$LAUNCH_RANK="* ]] || REPLY=${word#*=}
  done
  if [[ -z $REPLY && -n $LAUNCH_BIND ]]; then # a rank of another host, which mpirun or srun started
    ranks=${#devices[@]}
    [[ $LAUNCH_ENGINE != mpirun ]] || ranks=$OMPI_COMM_WORLD_LOCAL_SIZE
    python::find
    REPLY=$("$PYTHON" "${0%/scripts/lib/*}/tools/launch/devices/cores_here.py" "${words[0]}" "${words[1]}" \
      "$LAUNCH_LOCAL_RANK" "$ranks" "${devices[@]}") || REPLY=''
  fi
}

# Binds this process, which becomes the trainer. MSRUN_CPU_LIST tells the cores to MindSpore's set_cpu_affinity. The first
# line of the rank's log names them. A rank that cannot be bound runs all the same.
rank_entry::_bind() {
  local -r pid=$BASHPID
  local said='none are found for it on this host'
  rank_entry::cores
  if [[ -n $REPLY ]] && said=$(LC_ALL=C taskset -c -p "$REPLY" "$pid" 2>&1); then
    export MSRUN_CPU_LIST="[$REPLY]"
    printf 'note: this rank is bound to cores %s\n' "${said##*: }" || :
  else
    printf 'note: this rank is not bound to cores: %s\n' "${said##*: }" || :
  fi
}

# rank_entry::_keep FILE: saves the environment as shell commands. Only the owner can read the file: it may contain
# passwords. A rank also runs without the file.
rank_entry::_keep() {
  local -r file=${LAUNCH_LOGS:-$LOG_DIR}/$1
  unset LAUNCH_LOGS
  umask 077
  if ! { own_shell::print_exports >"$file"; } 2>/dev/null; then
    printf 'note: %s cannot be written; this process starts all the same\n' "$file" || :
    rm -f -- "$file" || :
  fi
  umask "$LAUNCH_UMASK"
}

# MindSpore 2.10 has a race: if a thread runs before the one that woke it, the connection to the scheduler counts as
# failed, and MindSpore retries it, for minutes at worst. It happens on a busy machine, where both threads share a core.
# Under the batch policy a woken thread waits. If the policy cannot be set, the rank runs without it. A rank of the
# launcher's own (engine local) has it from the launcher: chrt is a process, and 64 of them are 60 ms.
rank_entry::_wake_late() {
  processes::policy "$BASHPID"
  [[ -n ${MS_WORKER_NUM-} && $REPLY != 3 ]] || return 0 # SCHED_BATCH
  chrt --batch --pid 0 "$BASHPID" >/dev/null 2>&1 || :
}

# What this shell starts between rank_entry::starting and rank_entry::started has the policy. The shell itself has it only
# so long: on a busy machine it would notice the end of a rank late. A policy that the user has chosen stays.
rank_entry::starting() {
  processes::policy "$$"
  [[ -n ${MS_WORKER_NUM-} && $REPLY == 0 ]] && chrt --batch --pid 0 "$$" >/dev/null 2>&1 || return 0
  RANK_ENTRY_BATCH=yes
}

rank_entry::started() {
  [[ -z $RANK_ENTRY_BATCH ]] || chrt --other --pid 0 "$$" >/dev/null 2>&1 || :
  RANK_ENTRY_BATCH=''
}
