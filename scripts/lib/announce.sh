# shellcheck shell=bash
# What the launcher says of the whole job when the ranks start, and when all of them have ended well.

# announce::start: what is about to run, and where its logs are.
announce::start() {
  local ranks devices host
  local -A hosts=()
  if ((${#PLAN_RANKS[@]} == 0)); then
    report::path "$PLAN_RUN_DIR"
    log::say $"this pod has MindSpore's scheduler and no ranks, logs in $REPLY"
    return
  fi
  log::count "${#PLAN_RANKS[@]}" rank
  ranks=$REPLY
  log::named device "${PLAN_DEVICES[@]}"
  devices=$REPLY
  for host in ${PLAN_HOSTS[@]+"${PLAN_HOSTS[@]}"}; do
    hosts[$host]=1
  done
  ((${#hosts[@]} < 2)) || devices=$"$devices of ${#hosts[@]} hosts"
  report::path "$PLAN_RUN_DIR"
  log::note $"$ranks on $devices, logs in $REPLY"
}

# announce::silence: says that no rank of a program printed anything: Python also "succeeds" with a file of functions that
# nobody calls.
announce::silence() {
  local rank
  ((${#PROGRAM[@]} && ${#PLAN_RANKS[@]})) || return 0
  for rank in "${PLAN_RANKS[@]}"; do # ends at the first rank that has printed something
    [[ -e $PLAN_LOG_DIR/rank_$rank.log && ! -s $PLAN_LOG_DIR/rank_$rank.log ]] || return 0
  done
  log::note $"note: all ranks ended with 0 and printed nothing; does the program call what it defines? A file of tests: --pytest FILE"
}
