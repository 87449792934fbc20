# shellcheck shell=bash
# Engine "local": this shell itself starts the ranks, on this machine.

engine::start() {
  local i
  plogs::make
  LAUNCH_DEVICES=${PLAN_ENGINE[device_ids]-${PLAN_DEVICES[*]-}} LAUNCH_SIZES=${PLAN_ENGINE[sizes]} LAUNCH_BIND=$PLAN_BIND
  if ((${#PLAN_SCHEDULER[@]})); then
    [[ -z ${PLAN_ENGINE[scheduler_is_shared]-} ]] || judging::share_scheduler
    supervise::start scheduler "$PLAN_LOG_DIR/scheduler.log" rank_entry::become scheduler "${PLAN_SCHEDULER[@]}"
  fi
  rank_entry::starting
  for i in "${!PLAN_RANKS[@]}"; do
    LAUNCH_RANK=${PLAN_RANKS[i]} LAUNCH_LOCAL_RANK=$i
    supervise::start "$LAUNCH_RANK" "$PLAN_LOG_DIR/rank_$LAUNCH_RANK.log" \
      rank_entry::become rank "${PLAN_TRAINER[@]}"
  done
  rank_entry::started
}

engine::print() {
  dry_run::ranks
}
