# shellcheck shell=bash
# Where each host of a job has a launcher, and restarts are allowed: the steps of an attempt that all of them take together.
# attempts.sh speaks with the others. Elsewhere these functions do not wait, and tell nobody.

# together::is_ready: waits until all hosts are ready for the attempt; fails if it does not begin.
together::is_ready() {
  attempts::ready
  supervise::wait_until attempts::may_begin
}

# together::has_failed: whether the attempt has failed, here or on another host, and nothing has ended the job.
together::has_failed() {
  [[ -z $STOPPING_SIGNAL && $ATTEMPTS_VERDICT != end && -n $JUDGING_FIRST$ATTEMPTS_VERDICT ]]
}

# together::tell: tells the other hosts, once, what ends the attempt or the job on this one.
together::tell() {
  attempts::is_open || return 0
  outcome::exit_status
  if [[ -n $JUDGING_FIRST ]]; then
    report::what "$JUDGING_FIRST"
    attempts::failed "$LAUNCH_STATUS" "$REPLY"
  elif [[ -n $LIMITS_REACHED ]]; then
    attempts::stopped "$LAUNCH_STATUS" "its --${LIMITS_REACHED/hang/hang_timeout} is reached"
  elif [[ -n $STOPPING_SIGNAL ]]; then
    attempts::stopped "$LAUNCH_STATUS" $"SIG$STOPPING_SIGNAL has stopped its launcher"
  fi
}

# together::await: if all ranks of this host have ended with 0, waits until those of all hosts have, or one has failed.
together::await() {
  together::tell
  attempts::is_open || return 0
  stopping::again # so that a signal, or the --timeout, ends this wait
  limits::again
  attempts::done
  supervise::wait_until attempts::is_judged || :
  together::tell
}
