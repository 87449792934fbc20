# shellcheck shell=bash
# --dry_run: the plan as shell commands.

# dry_run::environment: prints what all ranks have in common.
dry_run::environment() {
  local name
  log::harmless "$LOG_NAME"
  printf '# %s\n' $"$REPLY: ${#PLAN_RANKS[@]} ranks; this is what it would start"
  printf '# %s\n' $"every rank runs $PLAN_ABOUT"
  if ((${#PLAN_RESTART[@]})); then
    printf '# from the second attempt on it runs: '
    dry_run::_line "${PLAN_RESTART[@]}"
  fi
  dry_run::_line cd "$PWD"
  dry_run::_line mkdir -p "$PLAN_RUN_DIR"
  dry_run::_line ${PLAN_SETUP[@]+"${PLAN_SETUP[@]}"}
  dry_run::_line ${PLAN_CONVERT[@]+"${PLAN_CONVERT[@]}"}
  rank_entry::job_environment ${PLAN_EXPORTS[@]+"${PLAN_EXPORTS[@]}"}
  for name in $RANK_ENTRY_CONTRACT; do
    [[ -n ${!name+set} ]] || printf 'unset %s\n' "$name"
  done
  ((${#PLAN_EXPORTS[@]} == 0)) || dry_run::_line export "${PLAN_EXPORTS[@]}"
}

# dry_run::scheduler: prints the command of MindSpore's scheduler, if the plan has one.
dry_run::scheduler() {
  ((${#PLAN_SCHEDULER[@]} == 0)) || dry_run::_member scheduler "${PLAN_SCHEDULER[@]}"
}

# dry_run::ranks: prints every rank of this host, with its own variables.
dry_run::ranks() {
  local i
  LAUNCH_DEVICES=${PLAN_ENGINE[device_ids]-${PLAN_DEVICES[*]-}} LAUNCH_SIZES=${PLAN_ENGINE[sizes]} LAUNCH_BIND=$PLAN_BIND
  LAUNCH_PLOGS=$PLAN_PLOGS LAUNCH_LOGS=$PLAN_LOG_DIR
  for i in "${!PLAN_RANKS[@]}"; do
    LAUNCH_RANK=${PLAN_RANKS[i]} LAUNCH_LOCAL_RANK=$i
    dry_run::_member rank "${PLAN_TRAINER[@]}"
  done
}

# dry_run::engine WORD...: prints the engine's command. The WORDs are all before the trainer's.
dry_run::engine() {
  local name
  local -a words=()
  for name in $RANK_ENTRY_FOR_AGENTS ${!LAUNCH_KEPT_@}; do
    words+=("$name=${!name}")
  done
  dry_run::_line export "${words[@]}"
  dry_run::_line "$@" "${PLAN_TRAINER[@]}"
  ((${#PLAN_SCHEDULER[@]} == 0)) || printf 'kill %%1 # the scheduler\n'
}

# dry_run::_line WORD...: prints the words as one line, quoted for the shell; without words, nothing.
dry_run::_line() {
  (($#)) || return 0
  dry_run::_words "$@"
  printf '\n'
}

# dry_run::_member rank|scheduler COMMAND...: prints one line that starts it in the background.
dry_run::_member() (
  bound=() folder='' own=(RANK_ID DEVICE_ID MS_ROLE MS_NODE_ID)
  for variable in $RANK_ENTRY_DEFAULTS; do
    [[ -n ${!variable+set} ]] || own+=("$variable")
  done
  if [[ $1 == rank ]]; then
    rank_entry::cores
    [[ -z $REPLY ]] || bound=(taskset -c "$REPLY") own+=(MSRUN_CPU_LIST) MSRUN_CPU_LIST="[$REPLY]"
    plogs::folder "$LAUNCH_RANK"
    [[ -z $REPLY ]] || folder=$REPLY own+=(ASCEND_PROCESS_LOG_PATH) ASCEND_PROCESS_LOG_PATH=$REPLY
  fi
  rank_entry::"$1"
  if [[ $1 == rank ]]; then
    name=rank_$RANK_ID words=(env)
    printf '# rank %s on device %s\n' "$RANK_ID" "$DEVICE_ID"
    dry_run::_line ${folder:+mkdir -p "$folder"}
  else
    name=scheduler words=(env -u RANK_TABLE_FILE) own=(MS_ROLE)
    printf '# the scheduler of MindSpore'\''s cluster\n'
  fi
  shift
  for variable in "${own[@]}"; do
    [[ -z ${!variable+set} ]] || words+=("$variable=${!variable}")
  done
  dry_run::_words "${words[@]}" ${bound[@]+"${bound[@]}"} "$@"
  log::one_line "$PLAN_RUN_DIR/$name.log"
  printf ' >%s 2>&1 </dev/null &\n' "$REPLY"
)

dry_run::_words() {
  local word separator=''
  for word; do
    log::one_line "$word"
    printf '%s%s' "$separator" "$REPLY"
    separator=' '
  done
}
