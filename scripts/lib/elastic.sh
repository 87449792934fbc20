# shellcheck shell=bash
# Restarts of a job that has lost a host: without it, on the hosts that are left, or with a spare one in its place.
#
# After an attempt in which the engine may have lost a host, tools/launch/hosts/elastic.py makes another plan while
# nothing runs. It knows the hosts from launch.json, asks those that are left, and checks again what the launch has
# checked. If there can be no such plan, it says why, and the job ends with the failure that it has had.

ELASTIC_WORDS=()             # the words of the first plan
declare -A ELASTIC_CALLER=() # what the caller has of the variables that a plan sets
ELASTIC_PLAN=''              # the file of the next attempt's plan; empty: the plan stays as it is
declare -A ELASTIC_FIRST=()  # logs of an attempt that failed -> the host of the rank that failed first; none: -

# elastic::remember WORD...: the plan is made of these words. Call it before the plan's variables are exported.
elastic::remember() {
  local name
  ELASTIC_WORDS=("$@")
  elastic::_names
  for name in $REPLY; do
    [[ -z ${!name+set} ]] || ELASTIC_CALLER[$name]=${!name}
  done
}

# elastic::_names: the variables that plan and launcher set, in REPLY.
elastic::_names() {
  local assignment names="RESUME $RANK_ENTRY_CONTRACT"
  for assignment in ${PLAN_EXPORTS[@]+"${PLAN_EXPORTS[@]}"}; do
    names+=" ${assignment%%=*}"
  done
  REPLY=$names
}

# elastic::prepare N: call it after a failed attempt, before restart N. If a host is lost, makes the plan without it;
# fails if there can be none, or if something ends the job meanwhile.
elastic::prepare() {
  local -r file=$PLAN_RUN_DIR/restart_$1/plan
  local maker status=0
  ELASTIC_PLAN=''
  elastic::_note_first
  ((${#PLAN_HOSTS[@]})) && [[ -n $CARRIED_ENGINE ]] || return 0
  report::lost_host "$CARRIED_ENGINE"
  [[ -n $REPORT_LOST_HOST ]] || ((${#MEMBERS_LOST[@]})) || engine::knows_hosts || return 0
  stopping::again # so that a signal, or the --timeout, ends the wait below
  limits::again
  set -m # a process group of its own, which Ctrl-C does not reach
  elastic::_make "$1" </dev/null >"$file" &
  set +m
  maker=$!
  bus::say "$SUPERVISE_LIFELINE" start "$maker"
  supervise::wait_until elastic::_is_made "$maker" || { processes::signal INT "$maker" && processes::kill_late "$maker" 5; } || :
  wait "$maker" 2>/dev/null || status=$?
  bus::say "$SUPERVISE_LIFELINE" gone "$maker"
  if ((status)) || [[ $STOPPING_STATE != running ]]; then
    stopping::soon # the attempt has ended as it was: members that we stopped are shown so
    return 1
  fi
  [[ ! -s $file ]] || ELASTIC_PLAN=$file
}

# elastic::_make N: the new plan on stdout, with the environment in which the first one was made.
elastic::_make() {
  local name
  elastic::_names
  for name in $REPLY; do
    unset "$name"
  done
  for name in "${!ELASTIC_CALLER[@]}"; do
    export "$name=${ELASTIC_CALLER[$name]}"
  done
  supervise::close_pipes
  exec "$PYTHON" "$LAUNCH_ROOT/tools/launch/main.py" "attempt=$1" "run_dir=$PLAN_RUN_DIR" "lost=$REPORT_LOST_HOST" "${ELASTIC_WORDS[@]}"
}

# elastic::_is_made PID: whether the process has ended.
elastic::_is_made() {
  ! kill -0 "$1" 2>/dev/null
}

# elastic::take N: restart N has the plan that was made for it, if there is one.
elastic::take() {
  local name names
  [[ -n $ELASTIC_PLAN ]] || return 0
  elastic::_names
  names=$REPLY
  plan::replace "$ELASTIC_PLAN" || log::die 78 $"restart $1: the plan in $ELASTIC_PLAN is damaged; go on with --resume"
  for name in $names; do
    unset "$name"
  done
  rank_entry::job_environment ${PLAN_EXPORTS[@]+"${PLAN_EXPORTS[@]}"}
  rm -f -- "$ELASTIC_PLAN"
  ELASTIC_PLAN=''
}

# elastic::report: names the hosts that the job has lost, and one whose ranks failed first in every attempt.
elastic::report() {
  local lost host
  for lost in ${PLAN_LOST[@]+"${PLAN_LOST[@]}"}; do
    host=${lost%% *}
    log::say $"the job went on without $host (${lost#* }); look at that host before you use it again"
  done
  elastic::_note_first
  ((${#ELASTIC_FIRST[@]} > 1)) || return 0
  host=''
  for lost in "${ELASTIC_FIRST[@]}"; do
    [[ $lost == "${host:=$lost}" && $lost != - ]] || return 0
  done
  log::say $"in each of the ${#ELASTIC_FIRST[@]} attempts that failed, a rank of $host failed first; look at that host, or leave it out"
}

# elastic::_note_first: adds the host of the rank that failed first in this attempt, if there are several hosts.
elastic::_note_first() {
  local i
  [[ -n $JUDGING_FIRST ]] && ((${#PLAN_HOSTS[@]})) || return 0
  for i in "${!PLAN_RANKS[@]}"; do
    if [[ ${PLAN_RANKS[i]} == "$JUDGING_FIRST" ]]; then
      ELASTIC_FIRST[$PLAN_LOG_DIR]=${PLAN_HOSTS[i]}
      return 0
    fi
  done
  ELASTIC_FIRST[$PLAN_LOG_DIR]=-
}
