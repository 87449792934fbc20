# shellcheck shell=bash
# Makes this shell ours: what the caller exported reaches the ranks, but neither bash nor the programs that we call.
#
# bash, Python and grep read variables that a site or a user may have set. TMOUT ends a `read`, SHELLOPTS turns errexit
# on in every shell, an exported function replaces the command of its name. So each program of ours that is a shell
#
# 1. begins with the same few lines. They start bash again with -p, which takes no functions, no options and no BASH_ENV
#    from the environment, but leaves them there for the ranks. The lines work in every sh and whatever is exported: in
#    posix mode no function replaces `export`, `unset` and `exec`, and a backslash keeps aliases off. LAUNCH_SHELL
#    begins with the process id, by which the second start knows itself. The rest is what that start would change:
#    "posix" if POSIXLY_CORRECT was set, SHELLOPTS, BASHOPTS, and EXECIGNORE if it was set, each after a slash.
# 2. reads this file, which puts variables aside: X becomes LAUNCH_KEPT_X, which all our programs inherit. When a rank
#    becomes its trainer, it gets them back (own_shell::leave).
#
# Out of reach: with SHELLOPTS=noexec and SHELLOPTS=onecmd, bash runs no line of any script. This file works with bash
# 3.2.

# First what is in the way of functions: in posix mode their names have no colon, and FUNCNEST limits their calls.
if [[ ${LAUNCH_SHELL-} == "$$/posix/"* ]] && compgen -e -X '!POSIXLY_CORRECT' POSIXLY_CORRECT >/dev/null; then
  export LAUNCH_KEPT_POSIXLY_CORRECT=$POSIXLY_CORRECT
fi
set +o posix # this also unsets POSIXLY_CORRECT
if [[ -n ${FUNCNEST+set} ]]; then
  export LAUNCH_KEPT_FUNCNEST=$FUNCNEST
  unset FUNCNEST
fi

# own_shell::_take RECORD: puts the caller's variables aside. RECORD is LAUNCH_SHELL.
own_shell::_take() {
  local name record=${1#*/} shell_options bash_options
  record=${record#*/} shell_options=${record%%/*}
  record=${record#*/} bash_options=${record%%/*}
  [[ $record != */* ]] || own_shell::_keep EXECIGNORE "${record#*/}"
  [[ $shell_options != *xtrace* ]] || set -x # typed as: bash -x scripts/ascend2p.sh
  for name in $(compgen -e); do
    case $name in
      SHELLOPTS) # exported options are not for us; these two variables cannot be unset
        set +x
        own_shell::_keep SHELLOPTS "$shell_options"
        export -n SHELLOPTS
        ;;
      BASHOPTS)
        own_shell::_keep BASHOPTS "$bash_options"
        export -n BASHOPTS
        ;;
      *)
        if own_shell::_disturbs "$name"; then
          own_shell::_keep "$name" "${!name}"
          unset "$name"
        fi
        ;;
    esac
  done
}

# own_shell::_disturbs NAME: whether to put the variable aside.
own_shell::_disturbs() {
  case $1 in
    # bash reads them in a script
    TMOUT | CDPATH | GLOBIGNORE | GLOBSORT | CHILD_MAX | BASH_COMPAT | BASH_LOADABLES_PATH) ;;
    # programs that we call read them
    BASH_ENV | ENV | GREP_OPTIONS) ;;
    PYTHONINSPECT | PYTHONSAFEPATH | PYTHONOPTIMIZE | PYTHONIOENCODING | PYTHONWARNINGS | PYTHONWARNDEFAULTENCODING) ;;
    PYTHONCOERCECLOCALE | PYTHONDEBUG | PYTHONDEVMODE | PYTHONDUMPREFS | PYTHONMALLOCSTATS) ;;
    PYTHONPROFILEIMPORTTIME | PYTHONVERBOSE) ;;
    # variables of ours have these names, and a rank would get our value
    REPLY | BASH_REMATCH | ARGUMENTS | OPTIONS | TRAINER_ARGUMENTS | LOG_BEFORE | LOG_NAME | LOG_PLAIN | LOG_QUIET) ;;
    AGENT_* | CARRIED_* | CLI_* | CLOCK_* | CONSOLE_* | DOCTOR_* | ENGINE_* | LIMITS_* | MEMBERS_* | OUTCOME_*) ;;
    OUTPUT_* | OWN_SHELL_* | PLAN_* | PROCESSES_* | PYTHON_PROBLEM | RANK_ENTRY_* | REPORT_* | STOPPING_* | SUPERVISE_* | SYSTEM_*) ;;
    _ | container | *[!a-z0-9_]*) return 1 ;; # the doctor asks for container
    *) ;;                                     # all in small letters, as our local variables
  esac
}

# own_shell::_keep NAME VALUE: what is kept already counts, because it is the launcher's: on another host an agent may
# find a second one.
own_shell::_keep() {
  local -r kept=LAUNCH_KEPT_$1
  [[ -n ${!kept+set} ]] || export "$kept=$2"
}

# own_shell::print_exports: prints the environment that own_shell::leave gives to a command, as shell commands; fails on a
# full disk, which `declare -px` would not notice.
own_shell::print_exports() {
  local kept
  if [[ -z ${!LAUNCH_KEPT_@} ]]; then
    export -p
    return
  fi
  (
    for kept in ${!LAUNCH_KEPT_@}; do
      printf 'declare -x %s=%q\n' "${kept#LAUNCH_KEPT_}" "${!kept}"
      unset "$kept"
    done
    export -p
  )
}

# own_shell::leave COMMAND...: becomes COMMAND, with the caller's variables as they were. Only env can do that: bash
# cannot set SHELLOPTS, and EXECIGNORE may hide the command from it.
own_shell::leave() {
  local kept
  local -a words=(env)
  for kept in ${!LAUNCH_KEPT_@}; do
    words+=(-u "$kept")
  done
  for kept in ${!LAUNCH_KEPT_@}; do
    words+=("${kept#LAUNCH_KEPT_}=${!kept}")
  done
  set +e # bash 4.2 needs it to end with 127 or 126 if exec fails
  ((${#words[@]} > 1)) || exec "$@"
  [[ $1 != *=* ]] || words+=(nice -n 0) # env would take such a command for a variable
  exec "${words[@]}" "$@"
}

own_shell::_take "${LAUNCH_SHELL-}"
unset LAUNCH_SHELL
