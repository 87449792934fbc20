#!/usr/bin/env bash
# The first program in every rank that mpirun, srun or msrun starts.
#
# Usage: bash rank_agent.sh TRAINER...     (lib/engines/ only)
#
# It sets the rank's environment (rank_entry.sh) and opens the trainer's log in the run's folder. It reports the start
# and the end of the trainer to the launcher, and stops the trainer with all its children when the launcher orders it.
# So the launcher knows every rank's exit code at once, and the user's grace time applies, not the engine's.
#
# The trainer runs under a minder, as in the launcher (processes.sh). The minder's lines, signals and orders all come
# through one pipe, so the agent handles them one after the other. Only the agent is in the engine's process group;
# minder, trainer and watcher have their own groups. So the trainer can write its last lines when the engine kills its
# group, and the watcher can stop the trainer when the agent was killed.
#
#   bus       (see bus.sh) "start RANK PID", "exit RANK STATUS"; orders: "stop", "stacks", "cancelled", "USR1", "USR2"
#   lifeline  "start PID" of the trainer, for the watcher; it closes when the agent ends
#
# Environment: that of rank_entry.sh.
case ${LAUNCH_SHELL-} in # starts bash again, without what the environment tells it: see lib/own_shell.sh
  "$$/"*) ;;
  *)
    LAUNCH_SHELL=$$/${POSIXLY_CORRECT+posix}/${SHELLOPTS-}/${BASHOPTS-}${EXECIGNORE+/$EXECIGNORE}
    POSIXLY_CORRECT=${POSIXLY_CORRECT-}
    case ${BASH-} in */bash*) ;; *) BASH=bash ;; esac # with BASH_ARGV0, bash says that it is the login shell
    \export LAUNCH_SHELL && \unset EXECIGNORE BASH_ARGV0 && \exec "$BASH" -p -- "$0" "$@"
    ;;
esac
set -u
readonly AGENT_LIB=${0%/*}
for AGENT_PART in own_shell log clock python bus output processes plogs rank_entry; do
  # shellcheck source=/dev/null # each of them is checked as a file of its own
  source "$AGENT_LIB/$AGENT_PART.sh"
done

AGENT_NAME=''      # the rank, or scheduler
AGENT_HOST=''      # this host
AGENT_LOG=''       # its log
AGENT_AWAY=''      # not empty: the run's folder is on another host, which cannot see this host's logs
AGENT_TRAINER=''   # pid of the trainer, and its process group
AGENT_MINDER=''    # pid of its minder
AGENT_WATCHER=''   # pid of agent::_watch
AGENT_STOPS=0      # 1: it was ordered to stop
AGENT_CANCELLED='' # not empty: it has reported that the engine itself ends the job
AGENT_CODE=0       # its exit code when it was stopped
AGENT_STDOUT=''    # the agent's stdout, if the watcher must report to the launcher that the log grows
AGENT_BUS=''       # pipes
AGENT_LIFELINE=''

agent::main() {
  local kind=rank
  read -r AGENT_HOST </proc/sys/kernel/hostname
  [[ $AGENT_HOST == "$LAUNCH_HOST" ]] || HOSTNAME=$AGENT_HOST # some engines pass on the launcher's HOSTNAME
  cd -- "$LAUNCH_FOLDER" 2>/dev/null || agent::refuse "the folder $LAUNCH_FOLDER, where the command was typed, is not there"
  rank_entry::place || agent::refuse "no rank: $LAUNCH_ENGINE numbers it '$LAUNCH_RANK', on its host '$LAUNCH_LOCAL_RANK'"
  AGENT_NAME=$LAUNCH_RANK
  if [[ $AGENT_NAME == scheduler ]]; then
    kind=scheduler
    set -- "$LAUNCH_PYTHON" -u "${AGENT_LIB%/scripts/lib}/tools/launch/engines/mindspore_scheduler.py"
  fi
  agent::_open_log
  if [[ -z ${LAUNCH_SECRET-} ]]; then
    rank_entry::become "$kind" "$@" </dev/null >>"$AGENT_LOG" 2>&1
  fi
  exec {AGENT_BUS}<> <(:) {AGENT_LIFELINE}<> <(:)
  agent::_handle_signals
  processes::start "$AGENT_BUS" "$AGENT_LIFELINE" "$AGENT_NAME" "$AGENT_LOG" agent::_become "$kind" "$@"
  AGENT_MINDER=$!
  set -m # a process group of its own
  agent::_watch "$$" "$PPID" <&0 &
  AGENT_WATCHER=$!
  set +m
  agent::_attend
  local -r status=$REPLY
  # Slurm signals the trainer first and then the agent. Wait for that signal: it explains why the trainer ended.
  ((status != 143)) || [[ -n ${LAUNCH_BUS-} ]] || agent::_heed 3
  ((status == 0)) || [[ -z $AGENT_AWAY ]] || agent::_tell_away
  agent::tell exit "$AGENT_NAME" "$status"
  agent::_sweep
  [[ -z $AGENT_AWAY ]] || plogs::leave "$AGENT_NAME" "$status"
  # After a failure the launcher orders all ranks to stop. If that order does not come, the launcher is gone. Then the
  # agent exits with the rank's code, so that the engine ends the job.
  ((status == 0)) || [[ -n ${LAUNCH_BUS-}${LAUNCH_KEEPS_GOING-} ]] || agent::_heed "$(((LAUNCH_GRACE + 5) * 10))"
  { kill -KILL "$AGENT_WATCHER" && wait "$AGENT_WATCHER"; } 2>/dev/null # bash would say "Killed", in mpirun's log
  [[ ! -e $AGENT_LOG.seen ]] || rm -f -- "$AGENT_LOG.seen"
  # The launcher knows the code. If the engine saw a failure, it would stop the other ranks in its own way.
  [[ $AGENT_STOPS == 0 && -z ${LAUNCH_BUS-}${LAUNCH_KEEPS_GOING-} ]] || exit "$AGENT_CODE"
  exit "$status"
}

# agent::_attend: handles events until the trainer has ended; its exit status in REPLY. SIGCONT instead of 0, here and in
# agent::_watch, wakes processes of ours that somebody stopped.
agent::_attend() {
  local event value
  while :; do
    kill -CONT "$AGENT_WATCHER" 2>/dev/null
    if bus::next "$AGENT_BUS" 2; then
      event=${REPLY%% *} value=${REPLY##* }
      if [[ $event == exit ]]; then
        REPLY=$value
        return 0
      fi
      agent::_event "$event" "$value"
    elif ! kill -CONT "$AGENT_MINDER" 2>/dev/null && bus::empty "$AGENT_BUS"; then # killed, or cannot start the trainer
      REPLY=78
      [[ -z $AGENT_TRAINER ]] || { kill -KILL -- "-$AGENT_TRAINER" 2>/dev/null && REPLY=137; }
      return 0
    fi
  done
}

# agent::_heed TENTHS: follows orders until an order to stop comes, for at most TENTHS tenths of a second.
agent::_heed() {
  local tick
  for ((tick = 0; tick < $1 && AGENT_STOPS == 0; tick++)); do
    if bus::next "$AGENT_BUS" 0.1; then
      agent::_event "$REPLY" ''
    fi
  done
}

agent::_event() {
  case $1 in
    start)
      AGENT_TRAINER=$2
      agent::tell start "$AGENT_NAME" "$AGENT_TRAINER" "$AGENT_HOST"
      [[ -z $AGENT_AWAY ]] || agent::tell line "$AGENT_NAME" "(this rank's log is on $AGENT_HOST: $AGENT_LOG)"
      ((AGENT_STOPS == 0)) || agent::_end_trainer # the order to stop came first
      ;;
    stop) agent::_stop ;;
    stacks) agent::_stacks ;;
    cancelled) agent::_cancelled ;;
    USR[12]) [[ -z $AGENT_TRAINER ]] || kill -s "$1" "$AGENT_TRAINER" 2>/dev/null ;;
  esac
}

# shellcheck disable=SC2329 # processes::start calls it
agent::_become() {
  trap - URG ABRT TERM INT HUP QUIT USR1 USR2
  rank_entry::become "$@"
}

# agent::refuse TEXT: ends a rank that cannot start. The engine then ends the job, and its log has the reason.
agent::refuse() {
  printf 'rank %s on %s: %s\n' "${OMPI_COMM_WORLD_RANK-${SLURM_PROCID-}}" "$AGENT_HOST" "$1" >&2
  exit 78
}

# Opens the log in the run's folder, where report.sh looks for it. On a host that does not see that folder, the agent
# makes one of the same name.
agent::_open_log() {
  [[ -f $LOG_DIR/launch.json ]] || AGENT_AWAY=1
  [[ -z $AGENT_AWAY ]] || mkdir -p -- "$LAUNCH_LOGS" || agent::refuse "the log folder $LAUNCH_LOGS cannot be made"
  AGENT_LOG=$LAUNCH_LOGS/$AGENT_NAME.log
  [[ $AGENT_NAME == scheduler ]] || AGENT_LOG=$LAUNCH_LOGS/rank_$AGENT_NAME.log
  if [[ -n ${LAUNCH_LINKS-} && $AGENT_NAME != scheduler ]]; then
    output::link "$LAUNCH_LINKS" "$AGENT_NAME" "$AGENT_LOG" || agent::refuse "$REPLY cannot be made"
  fi
  : >>"$AGENT_LOG" || agent::refuse "the log $AGENT_LOG cannot be written"
}

# agent::tell WORD...: sends one line to the launcher, in one write, so that mpirun does not mix it with another rank's.
agent::tell() {
  if [[ -n ${LAUNCH_BUS-} ]]; then
    [[ $1 != start ]] || printf '.start %d\n' "$3" >"$LAUNCH_LIFELINE"
    [[ $1 == @(line|plog) ]] || printf '.%s\n' "$*" >"$LAUNCH_BUS"
  else
    printf '\n.%s %s\n' "$LAUNCH_SECRET" "$*" # another rank's line may lack its newline
  fi 2>/dev/null
}

# Sends what the launcher's host cannot read of a rank that failed: the end of its log, and what CANN logged as errors.
agent::_tell_away() {
  agent::_tell_each line < <(output::tail "$AGENT_LOG")
  agent::_tell_each plog < <(plogs::errors "$AGENT_NAME" "$AGENT_TRAINER")
}

# agent::_tell_each WORD: sends each line of stdin.
agent::_tell_each() {
  local line
  while IFS= read -r line; do
    agent::tell "$1" "$AGENT_NAME" "$line"
  done
}

agent::_handle_signals() {
  if [[ -n ${LAUNCH_BUS-} ]]; then         # the supervisor signals the trainer itself
    trap : TERM INT HUP QUIT URG USR1 USR2 # not '': children of bash 4.2 inherit that and cannot reset it
    return 0
  fi
  # shellcheck disable=SC2064 # the pipe is meant to be expanded now
  {
    trap "bus::say $AGENT_BUS stop" URG
    trap "bus::say $AGENT_BUS stacks" ABRT
    trap "bus::say $AGENT_BUS cancelled" TERM INT HUP QUIT
    trap "bus::say $AGENT_BUS USR1" USR1
    trap "bus::say $AGENT_BUS USR2" USR2
  }
  [[ ${LAUNCH_CONTROL-} != stdin ]] || trap : USR1 USR2 # Slurm sends them to the trainer itself
}

# A second order changes nothing: the launcher itself kills a rank that it does not want to wait for.
agent::_stop() {
  ((AGENT_STOPS == 0)) || return 0
  AGENT_STOPS=1
  [[ -z $AGENT_TRAINER ]] || agent::_end_trainer
}

agent::_end_trainer() {
  processes::signal TERM "$AGENT_TRAINER"
  agent::_kill_in_time
}

# SIGKILL after the grace time, from a process that may outlive the agent and therefore closes the agent's pipes.
agent::_kill_in_time() {
  {
    trap '' URG TERM INT HUP
    processes::kill_late "$AGENT_TRAINER" "$LAUNCH_GRACE"
  } <&- >/dev/null 2>&1 {AGENT_LIFELINE}>&- {AGENT_BUS}>&- &
}

# Reports to the launcher where the trainer is, and writes the whole stack to rank_N.stack beside the log. This may end
# the trainer.
agent::_stacks() {
  local said
  kill -0 "${AGENT_TRAINER:-none}" 2>/dev/null || return 0
  said=$("$LAUNCH_PYTHON" "${AGENT_LIB%/scripts/lib}/tools/diagnosis/stacks.py" "$LAUNCH_LOGS" "$AGENT_NAME=$AGENT_TRAINER" 2>/dev/null </dev/null)
  agent::tell stack "$AGENT_NAME" "${said#*: }"
}

# The engine itself ends the job: after scancel, or because mpirun has lost a host. Under Slurm, srun and the daemon on
# the node both send SIGTERM; only the first one counts. It counts even after an order to stop, because it limits the
# grace time. If somebody signalled this agent alone, mpirun ends the other ranks only when it sees a failure.
agent::_cancelled() {
  [[ -z $AGENT_CANCELLED ]] || return 0
  AGENT_CANCELLED=1
  ((AGENT_STOPS == 1)) || [[ ${LAUNCH_CONTROL-} == stdin ]] || AGENT_CODE=143
  agent::tell cancelled
  if ((${LAUNCH_PATIENCE:=$LAUNCH_GRACE} < LAUNCH_GRACE)); then
    LAUNCH_GRACE=$LAUNCH_PATIENCE
    ((AGENT_STOPS == 0)) || [[ -z $AGENT_TRAINER ]] || agent::_kill_in_time
  fi
  agent::_stop
}

# agent::_watch AGENT ENGINE: checks every two seconds, and stops the trainer if the agent or the engine's process on
# this host was killed. The end of stdin means that the launcher was killed. It passes orders from stdin to the agent.
agent::_watch() {
  local from
  trap '' URG ABRT TERM INT HUP QUIT USR1 USR2
  [[ -z $AGENT_AWAY || $LAUNCH_HANG == 0 ]] || exec {AGENT_STDOUT}>&1
  exec {from}<"/dev/fd/$AGENT_LIFELINE"
  exec {AGENT_LIFELINE}>&- >/dev/null 2>&1
  read -r -u "$from" _ AGENT_TRAINER || return 0 # no trainer, and the agent has ended
  [[ ${LAUNCH_CONTROL-} != stdin ]] || exec {from}<&0
  exec <&-
  while kill -CONT "$1" 2>/dev/null && { [[ -n ${LAUNCH_BUS-} ]] || processes::is_child "$1" "$2"; }; do
    if bus::next "$from" 2; then
      bus::say "$AGENT_BUS" "$REPLY"
    elif (($? <= 128)); then
      break # the end of the pipe: the agent or the launcher was killed
    fi
    if [[ -n $AGENT_STDOUT ]] && output::has_grown "$AGENT_LOG"; then # the launcher cannot see that itself
      agent::tell wrote "$AGENT_NAME" >&"$AGENT_STDOUT"
    fi
  done
  [[ -z ${LAUNCH_BUS-} ]] || agent::tell exit "$AGENT_NAME" 137 # the engine may not notice it
  processes::signal TERM "$AGENT_TRAINER"
  processes::kill_late "$AGENT_TRAINER" "$LAUNCH_GRACE"
  agent::_sweep
}

# Kills what the trainer left, in its group and, by the marks in their environment, outside of it.
agent::_sweep() {
  kill -TERM -- "-$AGENT_TRAINER" 2>/dev/null
  [[ $AGENT_HOST == "$LAUNCH_HOST" ]] || processes::sweep "$LAUNCH_JOB" "$AGENT_NAME" # the launcher sweeps its own host
}

agent::main "$@"
