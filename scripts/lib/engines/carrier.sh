# shellcheck shell=bash
# What the engines have in common that carry ranks to other hosts (mpirun, srun); of msrun, which does
# not, what its agents need to know.
#
# The engine's process is a member of the supervisor, like a rank. Every rank is an agent
# (lib/rank_agent.sh), whose lines about its trainer come through the engine's stdout; here they are
# put on the supervisor's bus. Orders go the other way: SIGTERM from the supervisor becomes an order to
# the agents, which have the grace time for their trainers, and not SIGTERM to the engine, which would
# kill them after a time of its own. An engine that does not end is killed with what it left.
#
# An engine's file has
#   engine::command   sets ENGINE_COMMAND, all but the trainer
#   engine::order     WORD PID: hands "stop", "stacks", "USR1" or "USR2" on to the ranks of the engine's process PID
#   engine::scheduler puts what reaches another host before PLAN_SCHEDULER, where it has to
#   ENGINE_NAME

ENGINE_COMMAND=() # the engine with its options, up to the agent
CARRIER_GRACE=''  # what the user gave as --grace
ENGINE_ORDERS=''  # a pipe to the engine's stdin
# Names of variables that belong to a host, a login or an engine, not to a job; with a * at its end: all
# that begin so.
readonly ENGINE_OWN_VARIABLES='HOME USER LOGNAME SHELL MAIL PWD OLDPWD SHLVL _ TERM HOSTNAME DISPLAY TMPDIR LINES
COLUMNS LS_COLORS SSH_* XDG_* DBUS_* OMPI_* PMIX_* PRTE_* SLURM_* SLURMD_* BASH_*'

readonly CARRIER_VARIABLES='LAUNCH_ENGINE LAUNCH_DEVICES LAUNCH_FOLDER LAUNCH_HOST LAUNCH_EXPORTS LAUNCH_LOGS LAUNCH_LINKS LAUNCH_UMASK LAUNCH_HANG'

# engine::start: the scheduler, if the plan has one, then the engine.
engine::start() {
  local rank
  LAUNCH_TELL="launch-$RANDOM$RANDOM$RANDOM"
  LAUNCH_GRACE=${CARRIER_GRACE:=$SUPERVISE_GRACE}
  if ((${#PLAN_SCHEDULER[@]})); then
    engine::scheduler
    supervise::start scheduler "$PLAN_LOG_DIR/scheduler.log" rank_entry::become scheduler "${PLAN_SCHEDULER[@]}"
  fi
  SUPERVISE_CARRIER=$ENGINE_NAME
  SUPERVISE_GRACE=$((CARRIER_GRACE + 3)) # the agents are the first to kill
  for rank in "${PLAN_RANKS[@]}"; do
    supervise::expect "$rank" "$PLAN_LOG_DIR/rank_$rank.log"
  done
  supervise::start "$ENGINE_NAME" "$PLAN_LOG_DIR/$ENGINE_NAME.log" carrier::_carry "/proc/$$/fd/$SUPERVISE_BUS"
}

# engine::print: for --dry_run, the engine's command; nobody listens to the ranks that it starts.
engine::print() {
  local name
  local -a words=()
  carrier::environment
  engine::command
  for name in $CARRIER_VARIABLES; do
    words+=("$name=${!name}")
  done
  plan::print_line export "${words[@]}"
  plan::print_line "${ENGINE_COMMAND[@]}" "${PLAN_TRAINER[@]}"
  ((${#PLAN_SCHEDULER[@]} == 0)) || printf 'kill %%1 # the scheduler\n'
}

# carrier::environment: what the agents need to know, exported; see lib/rank_agent.sh.
carrier::environment() {
  local assignment
  LAUNCH_ENGINE=$ENGINE_NAME LAUNCH_DEVICES=${PLAN_ENGINE[devices]} LAUNCH_FOLDER=$PWD LAUNCH_EXPORTS=''
  LAUNCH_LINKS=${PLAN_ENGINE[logs]-}
  LAUNCH_LOGS=$PLAN_LOG_DIR LAUNCH_UMASK=$(umask) LAUNCH_HANG=$SUPERVISE_HANG
  read -r LAUNCH_HOST </proc/sys/kernel/hostname
  for assignment in "${PLAN_EXPORTS[@]}"; do
    LAUNCH_EXPORTS+="${LAUNCH_EXPORTS:+ }${assignment%%=*}"
  done
  # shellcheck disable=SC2086,SC2163 # a list of names
  export $CARRIER_VARIABLES
}

# carrier::exported: the names of all variables that go to other hosts, in REPLY.
carrier::exported() {
  local name
  REPLY=''
  while IFS= read -r name; do
    [[ $name == @(${ENGINE_OWN_VARIABLES//[[:space:]]/|}) ]] || REPLY+="${REPLY:+ }$name"
  done < <(compgen -e)
}

# carrier::_carry BUS: the member: runs the engine, reads what comes from it, hands orders on. The
# environment for the ranks is made here: the launcher's own children do not belong to the job.
carrier::_carry() {
  local bus pipe engine='' ordered='' word name value told=exit failed=0
  carrier::environment
  export LAUNCH_JOB LAUNCH_TELL LAUNCH_GRACE
  engine::command
  exec {bus}>"$1" {pipe}<> <(:) {ENGINE_ORDERS}<> <(:)
  set -m # a group of its own: the supervisor's signals are for us
  carrier::_run "$pipe" &
  set +m
  local -r runner=$!
  trap 'carrier::_order stop' TERM
  trap 'carrier::_order stacks' ABRT
  trap 'carrier::_order USR1' USR1
  trap 'carrier::_order USR2' USR2
  while :; do
    if ! bus::next "$pipe" 1; then
      kill -0 "$runner" 2>/dev/null || break # it was killed and could not say so
      continue
    fi
    if [[ $REPLY != *"$LAUNCH_TELL "* ]]; then
      [[ -z $REPLY ]] || printf '%s\n' "$REPLY"
      continue
    fi
    REPLY=${REPLY#*"$LAUNCH_TELL "} # behind the label that the user's own settings may have mpirun or srun write
    read -r word name value <<<"$REPLY"
    case $word in
      engine) engine=$name ;;
      start) bus::say "$bus" began "$name" ;;
      stack | wrote) bus::say "$bus" "$word" "$name" "$value" ;;
      line) printf '%s\n' "${REPLY#"line $name "}" >>"$PLAN_LOG_DIR/rank_$name.log" ;;
      exit)
        bus::say "$bus" "$told" "$name" "$value"
        ((value == 0)) || failed=$value
        ;;
      cancelled) carrier::_cancelled ;;
      ended) # with 0 though it ended ranks: somebody else did that
        ((name != 0)) || [[ $told == exit ]] || name=$failed
        exit "$name"
        ;;
    esac
  done
  exit 137
}

# The engine ends the ranks on its own account. Slurm is told to, by scancel say, and the launcher hears of it
# even if it was quicker. mpirun, if we have not told it to, has a reason of its own, and how the ranks end from
# now on is no failure of theirs.
carrier::_cancelled() {
  if [[ $ENGINE_NAME == srun ]]; then
    bus::say "$bus" cancelled
  elif [[ -z $ordered ]]; then
    told=was
  fi
}

# carrier::_order WORD
carrier::_order() {
  [[ $1 != stop ]] || ordered=1
  if [[ -n $engine ]]; then
    engine::order "$1" "$engine"
  elif [[ -n $ordered ]]; then
    exit 143 # not even started; the supervisor sweeps what is left
  fi
}

# carrier::_run PIPE: the engine, its stdout in PIPE; what it says on stderr goes to its log. The other
# end of its stdin is the carrier's alone, so that it ends with the carrier.
carrier::_run() {
  local -r pipe=$1
  set -m
  (
    bus::say "$pipe" "$LAUNCH_TELL" engine "$BASHPID"
    # Opened anew: ssh makes what it gets non-blocking, for all who have the same.
    exec >"/dev/fd/$pipe" <"/dev/fd/$ENGINE_ORDERS" {ENGINE_ORDERS}>&- {pipe}>&- {bus}>&-
    exec "${ENGINE_COMMAND[@]}" "${PLAN_TRAINER[@]}"
  ) &
  set +m
  exec {ENGINE_ORDERS}>&- {bus}>&-
  bus::await "$!"
  printf '\n.%s ended %d\n' "$LAUNCH_TELL" "$REPLY" >&"$pipe" # the engine's last line may lack its end
}
