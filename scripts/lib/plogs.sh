# shellcheck shell=bash
# CANN's own logs of the ranks, the plogs: each rank has a folder for them. For the ranks, their agents and --dry_run.
# tools/diagnosis/kept_plogs.py says what stays of them on the launcher's host.
#
# LAUNCH_PLOGS says how: empty, the rank does not use CANN; else which plogs stay (--keep_plogs), and after a blank the
# folder of the user, if there is one. Without it the folders are beside the logs, in LAUNCH_LOGS.

# plogs::folder RANK: the rank's folder, in REPLY; empty if it does not use CANN.
plogs::folder() {
  REPLY=''
  case $LAUNCH_PLOGS in
    '') ;;
    *' '*) REPLY=${LAUNCH_PLOGS#* }/rank_$1 ;;
    *) REPLY=$LAUNCH_LOGS/plog/rank_$1 ;;
  esac
}

# plogs::make: in the launcher: makes the folders of all ranks at once, where all of them run on its host; those of the first
# attempt are there, the plan has made them. A rank that had to start a process for that would wait, or fail, where no more
# processes may be started.
plogs::make() {
  [[ -n $LAUNCH_PLOGS ]] && ((${#PLAN_RANKS[@]})) || return 0
  plogs::folder "${PLAN_RANKS[${#PLAN_RANKS[@]}-1]}"
  [[ -d $REPLY ]] || plogs::_make_all
}

plogs::_make_all() (
  plogs::folder ''
  for ((i = 0; i < ${#PLAN_RANKS[@]}; i += 1000)); do # a command has a limit of words
    folders=("${PLAN_RANKS[@]:i:1000}")
    mkdir -p -- "${folders[@]/#/$REPLY}" 2>/dev/null || return 0 # the rank itself says why
  done
)

# plogs::open RANK: makes the rank's folder, and exports it to CANN, which may not make the folders above it. If it cannot
# be made or written, the variable stays as the user has it, and the rank's log says why.
plogs::open() {
  local said=''
  plogs::folder "$1"
  [[ -n $REPLY ]] || return 0
  [[ -d $REPLY ]] || said=$(umask "$LAUNCH_UMASK" && LC_ALL=C exec mkdir -p -- "$REPLY" 2>&1) || :
  if [[ -d $REPLY && -w $REPLY && -x $REPLY ]]; then
    export ASCEND_PROCESS_LOG_PATH=$REPLY
  else
    printf "note: CANN's logs of this rank are not in %s: %s\n" "$REPLY" "${said##*: }" || :
  fi
}

# ---- on a host that does not see the run's folder ----------------------------------------------------

readonly PLOGS_LINES=20   # the first and the last lines that the launcher gets
readonly PLOGS_BYTES=1000 # of a line

# plogs::errors RANK PID: prints the first and the last lines of the level ERROR. The rank's folder may be one of the
# user, with the plogs of earlier jobs. Without a folder the name of a file has the process.
plogs::errors() (
  LC_ALL=C
  files=()
  plogs::folder "$1"
  if [[ -z $REPLY ]]; then
    return 0
  elif [[ -w $REPLY && -x $REPLY ]]; then
    candidates=("$REPLY"/debug/plog/plog-*.log)
  else
    candidates=("${ASCEND_PROCESS_LOG_PATH:-${HOME-}/ascend/log}/debug/plog/plog-$2"_*.log)
  fi
  for file in "${candidates[@]}"; do
    [[ ! -f $file || -L $file || ! $file -nt $LAUNCH_LOGS/rank_$1.env ]] || files+=("$file")
  done
  ((${#files[@]})) || return 0
  while IFS= read -r line; do
    output::cut "$line" "$PLOGS_BYTES"
    printf '%s\n' "$REPLY"
  done < <(
    plogs::_error_lines "${files[@]}" | head -n "$PLOGS_LINES"
    plogs::_error_lines "${files[@]}" | tail -n "+$((PLOGS_LINES + 1))" | tail -n "$PLOGS_LINES"
  )
)

# plogs::_error_lines FILE...: prints all lines of that level, each a little longer than we need it.
plogs::_error_lines() {
  grep -ah '^\[ERROR\]' -- "$@" 2>/dev/null | cut -b "1-$((PLOGS_BYTES + 1))" | tr -d '\0'
}

# plogs::leave RANK STATUS: the rank has ended: removes its folder if it does not stay, or is empty. A folder of the user
# always stays.
plogs::leave() {
  local -r folder=$LAUNCH_LOGS/plog
  [[ $LAUNCH_PLOGS == @(failed|all|none) && -d $folder && ! -L $folder ]] || return 0
  if [[ $LAUNCH_PLOGS == none || ($LAUNCH_PLOGS == failed && $2 == 0) ]]; then
    rm -rf -- "$folder/rank_$1"
  fi
  rmdir -- "$folder/rank_$1" 2>/dev/null
  rmdir -- "$folder" 2>/dev/null || :
}
