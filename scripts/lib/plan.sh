# shellcheck shell=bash
# The launch plan: one Python process makes it, this file reads it, and prints it for --dry_run.
#
# tools/launch/main.py writes pairs of NUL-terminated words, so that a path may contain any character:
#   run_dir DIR, export NAME=VALUE, rank "RANK DEVICE", host NAME (of that rank), trainer WORD,
#   restart WORD, scheduler WORD, about TEXT, setup WORD, convert WORD, engine "NAME VALUE", bind WORDS,
#   end NUMBER (of pairs before it)
# After that comes how Python ended: status NUMBER.

PLAN_RUN_DIR=''
PLAN_LOG_DIR=''           # the logs of this attempt: in PLAN_RUN_DIR, or in its subfolder restart_N
PLAN_EXPORTS=()           # NAME=VALUE, the same for all ranks
PLAN_RANKS=()             # rank ids of this host, in order of their local rank
PLAN_DEVICES=()           # their devices
PLAN_HOSTS=()             # their hosts, if there are several
PLAN_TRAINER=()           # the command of every rank
PLAN_RESTART=()           # their command from the second attempt on; empty: the same
PLAN_SCHEDULER=()         # the command of MindSpore's scheduler; empty if none is needed
declare -A PLAN_ENGINE=() # what the engine needs to know
PLAN_BIND=''              # the cores of the ranks, see rank_entry.sh; empty: they are not bound
PLAN_SETUP=()             # --dry_run: the command that writes the rank table that a launch would build
PLAN_CONVERT=()           # --dry_run: the command that makes checkpoints for this number of ranks
PLAN_ABOUT=''             # --dry_run: what every rank runs, for people
PLAN_LOCK_FD='' PLAN_LOCK_FILE=''

# plan::make WORD...: gets the plan from Python; ends the script if Python refuses the launch, or if the plan is not whole.
plan::make() {
  local status='' fault='' count=0 planned=''
  python::require
  # The second file: bash complains when it goes back to a locale that this machine does not have.
  plan::_read < <(
    code=0
    processes::ignore INT # while Python starts it would print a traceback; then main.py heeds Ctrl-C
    "$PYTHON" "$LAUNCH_ROOT/tools/launch/main.py" "$@" || code=$?
    { printf 'status\0%d\0' "$code"; } 2>/dev/null || : # Ctrl-C: nobody reads it
  ) 2>/dev/null
  if [[ $status == 0 && -z $fault && $planned == "$count" ]]; then
    return 0
  fi
  plan::unlock
  if [[ $status == 0 ]]; then
    fault=${fault:+$" at: $fault"}
    log::die 78 $"the plan is damaged$fault; does this Python print something at its start? Type: $PYTHON -c pass"
  elif [[ $status == 130 || ${status:-254} -le 128 ]]; then
    exit "$status" # Python has printed why
  fi
  status=${status:+$" (status $status)"}
  log::die 78 $"the plan's process could not be started, or was ended$status: see ulimit -u, the container's limit of pids, and the free memory"
}

# Reads the pairs, as bytes: in UTF-8, bash 5 drops byte 1 after a byte that is not UTF-8. `fault` is the first pair that
# does not belong in a plan.
plan::_read() {
  local kind value LC_ALL=C
  while [[ -z $status ]] && IFS= read -r -d '' kind && IFS= read -r -d '' value; do
    plan::_take "$kind" "$value" || fault=${fault:-$kind $value}
  done
}

# plan::_take KIND VALUE: keeps a pair. Fails if it does not belong in a plan; tools/launch/protocol.py refuses the same.
plan::_take() {
  case $1 in
    run_dir) [[ -n $2 ]] && PLAN_RUN_DIR=$2 PLAN_LOG_DIR=$2 ;;
    export) [[ $2 == [a-zA-Z_]*([a-zA-Z0-9_])=* ]] && PLAN_EXPORTS+=("$2") ;;
    rank) [[ $2 == +([0-9])' '+([0-9]) ]] && PLAN_RANKS+=("${2% *}") && PLAN_DEVICES+=("${2#* }") ;;
    host) [[ -n $2 && $2 != -* && $2 != *[[:space:][:cntrl:]]* ]] && PLAN_HOSTS+=("$2") ;;
    engine) [[ $2 == +([a-z_])' '* ]] && PLAN_ENGINE[${2%% *}]=${2#* } ;;
    trainer) PLAN_TRAINER+=("$2") ;;
    restart) PLAN_RESTART+=("$2") ;;
    scheduler) PLAN_SCHEDULER+=("$2") ;;
    about) PLAN_ABOUT=$2 ;;
    bind) [[ $2 == @(core|numa)' '+([a-zA-Z])*(' '+([0-9])=+([0-9,])) ]] && PLAN_BIND=$2 ;;
    setup) PLAN_SETUP+=("$2") ;;
    convert) PLAN_CONVERT+=("$2") ;;
    end) planned=$2 && return 0 ;;
    status) [[ $2 == +([0-9]) ]] && status=$2 && return 0 ;;
    *) return 1 ;;
  esac || return 1
  count=$((count + 1))
}

# plan::lock_file: makes the file with which this job locks its devices, in a folder that only this user can write.
# PLAN_LOCK_FD is its descriptor, or stays empty if there can be none. tools/launch/device_locks.py checks all of it
# once more and takes the lock. The lock lasts as long as the launcher or a rank has the descriptor open.
plan::lock_file() {
  local -r mask=$(umask)
  plan::_lock_folder
  PLAN_LOCK_FILE=$REPLY/$$.$RANDOM
  [[ -O $REPLY && ! -L $REPLY ]] || return 0 # the plan prints a note
  umask 077                                  # until the lock is taken nobody else may open the file, and lock it
  set -o noclobber                           # opens with O_EXCL, which follows no link
  { exec {PLAN_LOCK_FD}>"$PLAN_LOCK_FILE"; } 2>/dev/null || :
  set +o noclobber
  umask "$mask"
}

# plan::_lock_folder: this user's folder for locks, in REPLY; makes it if it is missing. Other users can make any name in
# /run/lock and /tmp, so there are ten names for it.
plan::_lock_folder() {
  local base=${LAUNCH_LOCKS-} make=1 suffix user
  system::user_id
  user=$REPLY
  if [[ -n $base ]]; then
    [[ $base != ?*/ ]] || base=${base%/} # with the slash, -L would follow a link
    [[ -e $base || -L $base ]] || mkdir -m 1777 -- "$base" 2>/dev/null || :
    [[ ! -L $base ]] || make=''
  elif [[ -k /run/lock && -w /run/lock ]]; then
    base=/run/lock
  else
    base=/tmp
  fi
  [[ -k $base || -O $base ]] || make='' # others could rename the folder
  for suffix in '' -{1..9}; do
    REPLY=$base/mindspore-launch-$user$suffix
    [[ -z $make || -e $REPLY || -L $REPLY ]] || mkdir -m 755 -- "$REPLY" 2>/dev/null || :
    [[ ! -O $REPLY || -L $REPLY ]] || return 0
  done
}

# plan::unlock: removes the file. The kernel frees the devices when the last process with the descriptor ends.
plan::unlock() {
  [[ -z $PLAN_LOCK_FD ]] || rm -f -- "$PLAN_LOCK_FILE"
}

# plan::reach_scheduler WORD...: prefixes the scheduler's command with the one that starts it on another host.
plan::reach_scheduler() {
  PLAN_SCHEDULER=("$@" "${PLAN_SCHEDULER[@]}")
}

# plan::make_logs N: makes the folder for the logs of restart N; says why it cannot.
plan::make_logs() {
  local -r folder=$PLAN_RUN_DIR/restart_$1
  local reason
  reason=$(mkdir -p -- "$folder" 2>&1) && return 0
  log::say $"no restart $1: the folder $folder for its logs cannot be made: ${reason##*: }"
  return 1
}

# plan::next_attempt N: from now on, the logs and the ranks' command are those of restart N.
plan::next_attempt() {
  PLAN_LOG_DIR=$PLAN_RUN_DIR/restart_$1
  ((${#PLAN_RESTART[@]} == 0)) || PLAN_TRAINER=("${PLAN_RESTART[@]}")
}

# plan::logs_problem: why the logs are not what the ranks wrote, in REPLY; empty if their folder is there and can be
# written. A full disk cuts off logs without any message in them.
plan::logs_problem() {
  local -r probe=$PLAN_LOG_DIR/.probe
  if [[ ! -d $PLAN_LOG_DIR ]]; then
    REPLY=$"the log folder $PLAN_LOG_DIR is gone, with the logs: it was removed, moved or replaced while the job ran"
  elif REPLY=$({ printf '%4096s' '' >"$probe"; } 2>&1); then
    REPLY=''
  else
    REPLY=$"the log folder $PLAN_LOG_DIR cannot be written any more: ${REPLY##*: }; the ends of the logs may be missing; make room, or choose another disk with --log_dir"
  fi
  rm -f -- "$probe" 2>/dev/null || :
}

# ---- the plan as shell commands --------------------------------------------------------------------

# plan::print_environment: prints what all ranks have in common.
plan::print_environment() {
  local name
  log::harmless "$LOG_NAME"
  printf '# %s\n' $"$REPLY: ${#PLAN_RANKS[@]} ranks; this is what it would start"
  printf '# %s\n' $"every rank runs $PLAN_ABOUT"
  if ((${#PLAN_RESTART[@]})); then
    printf '# from the second attempt on it runs: '
    plan::print_line "${PLAN_RESTART[@]}"
  fi
  plan::print_line cd "$PWD"
  plan::print_line mkdir -p "$PLAN_RUN_DIR"
  plan::print_line ${PLAN_SETUP[@]+"${PLAN_SETUP[@]}"}
  plan::print_line ${PLAN_CONVERT[@]+"${PLAN_CONVERT[@]}"}
  rank_entry::job_environment ${PLAN_EXPORTS[@]+"${PLAN_EXPORTS[@]}"}
  for name in $RANK_ENTRY_CONTRACT; do
    [[ -n ${!name+set} ]] || printf 'unset %s\n' "$name"
  done
  ((${#PLAN_EXPORTS[@]} == 0)) || plan::print_line export "${PLAN_EXPORTS[@]}"
}

# plan::print_scheduler: prints the command of MindSpore's scheduler, if the plan has one.
plan::print_scheduler() {
  ((${#PLAN_SCHEDULER[@]} == 0)) || plan::_print_member scheduler "${PLAN_SCHEDULER[@]}"
}

# plan::print_ranks: prints every rank of this host, with its own variables.
plan::print_ranks() {
  local i
  LAUNCH_DEVICES=${PLAN_DEVICES[*]} LAUNCH_SIZES=${PLAN_ENGINE[sizes]} LAUNCH_BIND=$PLAN_BIND
  for i in "${!PLAN_RANKS[@]}"; do
    LAUNCH_RANK=${PLAN_RANKS[i]} LAUNCH_LOCAL_RANK=$i
    plan::_print_member rank "${PLAN_TRAINER[@]}"
  done
}

# plan::print_engine WORD...: prints the engine's command. The WORDs are all before the trainer's.
plan::print_engine() {
  local name
  local -a words=()
  for name in $RANK_ENTRY_FOR_AGENTS ${!LAUNCH_KEPT_@}; do
    words+=("$name=${!name}")
  done
  plan::print_line export "${words[@]}"
  plan::print_line "$@" "${PLAN_TRAINER[@]}"
  ((${#PLAN_SCHEDULER[@]} == 0)) || printf 'kill %%1 # the scheduler\n'
}

# plan::print_line WORD...: prints the words as one line, quoted for the shell; without words, nothing.
plan::print_line() {
  (($#)) || return 0
  plan::_print_words "$@"
  printf '\n'
}

# plan::_print_member rank|scheduler COMMAND...: prints one line that starts it in the background.
plan::_print_member() (
  bound=() own=(RANK_ID DEVICE_ID MS_ROLE MS_NODE_ID)
  for variable in $RANK_ENTRY_DEFAULTS; do
    [[ -n ${!variable+set} ]] || own+=("$variable")
  done
  if [[ $1 == rank ]]; then
    rank_entry::cores
    [[ -z $REPLY ]] || bound=(taskset -c "$REPLY") own+=(MSRUN_CPU_LIST) MSRUN_CPU_LIST="[$REPLY]"
  fi
  rank_entry::"$1"
  if [[ $1 == rank ]]; then
    name=rank_$RANK_ID words=(env)
    printf '# rank %s on device %s\n' "$RANK_ID" "$DEVICE_ID"
  else
    name=scheduler words=(env -u RANK_TABLE_FILE) own=(MS_ROLE)
    printf '# the scheduler of MindSpore'\''s cluster\n'
  fi
  shift
  for variable in "${own[@]}"; do
    [[ -z ${!variable+set} ]] || words+=("$variable=${!variable}")
  done
  plan::_print_words "${words[@]}" ${bound[@]+"${bound[@]}"} "$@"
  log::one_line "$PLAN_RUN_DIR/$name.log"
  printf ' >%s 2>&1 </dev/null &\n' "$REPLY"
)

plan::_print_words() {
  local word separator=''
  for word; do
    log::one_line "$word"
    printf '%s%s' "$separator" "$REPLY"
    separator=' '
  done
}
