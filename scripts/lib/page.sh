# shellcheck shell=bash
# The page of a run, report.html in its folder. One Python process, tools/run_page/at_end.py, writes it when everything
# has been reported: with --report, and after a failure if that takes less than a second.

PAGE_WANTED=''       # not empty: --report
PAGE_PATIENCE=6000   # hundredths of a second for a page that the user wants
PAGE_SHORT=500       # and for one after a failure: 0.1 s is usual, but on a busy machine it takes longer
readonly PAGE_LATE=1 # seconds more until the process is killed: its own timer ends it, unless somebody has stopped it

page::want() {
  PAGE_WANTED=yes
}

# page::write STATUS: writes the page of the job that ended so. Whatever becomes of it is at most a note.
page::write() {
  local size=small patience=$PAGE_SHORT
  if [[ -n $STOPPING_SIGNAL ]]; then # whoever ends the launcher may not wait long
    [[ -n $PAGE_WANTED ]] || return 0
  elif [[ -n $PAGE_WANTED ]]; then
    size=any patience=$PAGE_PATIENCE
  elif (($1 == 0)); then
    return 0
  fi
  page::_can_start || return 0
  page::_ask "$size" "$patience"
  [[ $REPLY == written || $REPLY == large ]] || log::note $"no page of this run: $REPLY; python tools/report.py writes it"
}

# Not if a rank could not be started, because there are too many processes, and not without a folder.
page::_can_start() {
  ((${#MEMBERS_BEGAN[@]} == ${#MEMBERS_NAMES[@]})) && [[ -f $PLAN_RUN_DIR/launch.json ]]
}

# page::_ask small|any PATIENCE: the answer of the process in REPLY: written, large, or why there is no page.
page::_ask() {
  local answers process seconds end status answer=''
  printf -v seconds '%d.%02d' "$(($2 / 100))" "$(($2 % 100))"
  clock::now
  end=$((REPLY + $2 + PAGE_LATE * 100))
  exec {answers}< <(
    processes::ignore INT TERM HUP QUIT
    bus::say "$SUPERVISE_LIFELINE" helper "$BASHPID"
    supervise::close_pipes
    live::leave
    exec "$PYTHON" -S "$LAUNCH_ROOT/tools/run_page/at_end.py" "$PLAN_RUN_DIR" "$1" "$seconds" </dev/null 2>/dev/null
  )
  process=$!
  until clock::reached "$end"; do
    status=0
    bus::next "$answers" 0.1 || status=$?
    ((status == 0 || status > 128)) || break # its end
    ((status)) || answer=$REPLY
  done
  exec {answers}<&-
  ! processes::is_child "$process" "$$" || kill -KILL "$process" 2>/dev/null || :
  [[ -n $answer ]] || rm -f -- "$PLAN_RUN_DIR/report.html.$process.part" || :
  REPLY=${answer:-$"it was not ready after $seconds s, or was ended"}
}

# page::where: what is left of the run in its folder, with the page, as the end of a sentence, in REPLY.
page::where() {
  local where
  report::where
  where=$REPLY
  [[ -f $PLAN_RUN_DIR/report.html ]] || return 0
  report::path "$PLAN_RUN_DIR/report.html"
  REPLY=$"$where; page: $REPLY"
}
