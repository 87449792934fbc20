# shellcheck shell=bash
# The launch plan: one Python process makes it, this file reads it.
#
# tools/launch/main.py writes pairs of NUL-terminated words, so that a path may contain any character:
#   run_dir DIR, export NAME=VALUE, rank "RANK DEVICE RANK DEVICE ...", host "NUMBER NAME" (of the next so many ranks), trainer WORD,
#   restart WORD, scheduler WORD, about TEXT, setup WORD, convert WORD, engine "NAME VALUE", bind WORDS,
#   plogs "KEEP [FOLDER]", lost "HOST REASON", end NUMBER (of pairs before it)
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
PLAN_PLOGS=''             # where CANN logs, see plogs.sh; empty: the ranks do not use it
PLAN_SETUP=()             # --dry_run: the command that writes the rank table that a launch would build
PLAN_CONVERT=()           # --dry_run: the command that makes checkpoints for this number of ranks
PLAN_ABOUT=''             # --dry_run: what every rank runs, for people
PLAN_LOST=()              # "HOST REASON" of each host that the job has lost
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

# plan::replace FILE: the plan is that of FILE from now on, for a restart without a lost host; fails if FILE is damaged.
plan::replace() {
  local status='' fault='' count=0 planned=''
  (plan::_read <"$1" && [[ -z $fault && $planned == "$count" ]]) || return
  PLAN_EXPORTS=() PLAN_RANKS=() PLAN_DEVICES=() PLAN_HOSTS=() PLAN_TRAINER=() PLAN_RESTART=() PLAN_SCHEDULER=()
  PLAN_ENGINE=() PLAN_BIND='' PLAN_PLOGS='' PLAN_LOST=()
  plan::_read <"$1"
}

# plan::_take KIND VALUE: keeps a pair. Fails if it does not belong in a plan; tools/launch/protocol.py refuses the same.
plan::_take() {
  case $1 in
    run_dir) [[ -n $2 ]] && PLAN_RUN_DIR=$2 PLAN_LOG_DIR=$2 ;;
    export) [[ $2 == [a-zA-Z_]*([a-zA-Z0-9_])=* ]] && PLAN_EXPORTS+=("$2") ;;
    rank) plan::_take_ranks "$2" ;;
    host) plan::_take_hosts "${2%% *}" "${2#* }" ;;
    engine) [[ $2 == +([a-z_])' '* ]] && PLAN_ENGINE[${2%% *}]=${2#* } ;;
    trainer) PLAN_TRAINER+=("$2") ;;
    restart) PLAN_RESTART+=("$2") ;;
    scheduler) PLAN_SCHEDULER+=("$2") ;;
    about) PLAN_ABOUT=$2 ;;
    bind) [[ $2 == @(core|numa)' '+([a-zA-Z])*(' '+([0-9])=+([0-9,])) ]] && PLAN_BIND=$2 ;;
    plogs) [[ $2 == @(failed|all|none)?(' /'*) ]] && PLAN_PLOGS=$2 ;;
    lost) [[ $2 == +([! ])' '* ]] && PLAN_LOST+=("$2") ;;
    setup) PLAN_SETUP+=("$2") ;;
    convert) PLAN_CONVERT+=("$2") ;;
    end) planned=$2 && return 0 ;;
    status) [[ $2 == +([0-9]) ]] && status=$2 && return 0 ;;
    *) return 1 ;;
  esac || return 1
  count=$((count + 1))
}

# plan::_take_ranks WORDS: "RANK DEVICE" of some ranks.
plan::_take_ranks() {
  local i
  [[ $1 == [0-9]* && $1 != *[!0-9\ ]* ]] || return 1
  # shellcheck disable=SC2206 # a list of numbers
  local -a words=($1)
  ((${#words[@]} % 2 == 0)) || return 1
  for ((i = 0; i < ${#words[@]}; i += 2)); do
    PLAN_RANKS+=("${words[i]}")
    PLAN_DEVICES+=("${words[i+1]}")
  done
}

# plan::_take_hosts NUMBER NAME: the host of so many ranks.
plan::_take_hosts() {
  local i
  [[ $1 == +([0-9]) && $1 != 0* && -n $2 && $2 != -* && $2 != *[[:space:][:cntrl:]]* ]] || return 1
  for ((i = 0; i < $1; i++)); do
    PLAN_HOSTS+=("$2")
  done
}

# plan::lock_file: makes the file with which this job locks its devices, in a folder that only this user can write.
# PLAN_LOCK_FD is its descriptor, or stays empty if there can be none. tools/launch/devices/device_locks.py checks all of
# it once more and takes the lock. The lock lasts as long as the launcher or a rank has the descriptor open.
plan::lock_file() {
  local mask
  system::umask
  mask=$REPLY
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
