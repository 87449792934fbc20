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
#    "posix" if POSIXLY_CORRECT was set, SHELLOPTS, BASHOPTS, and EXECIGNORE if it was set, each after a slash. They
#    cannot be in a file of their own: to find it from a link needs readlink, which a function may replace.
# 2. reads this file, which puts variables aside: X becomes LAUNCH_KEPT_X, which all our programs inherit. When a rank
#    becomes its trainer, it gets them back (own_shell::leave).
#
# BASH_ARGV0 does not reach the ranks. With it, bash 5.1 and later name the user's login shell in BASH, which may not be
# bash; and bash 5 itself does not pass on the caller's value.
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

# The names of variables that are put aside, as a pattern of bash.
# bash itself
OWN_SHELL_ASIDE='TMOUT|CDPATH|GLOBIGNORE|GLOBSORT|CHILD_MAX|BASH_COMPAT|BASH_LOADABLES_PATH|SHELLOPTS|BASHOPTS'
# programs that we call
OWN_SHELL_ASIDE+='|BASH_ENV|ENV|TEXTDOMAIN|TEXTDOMAINDIR|GREP_OPTIONS|PYTHONINSPECT|PYTHONSAFEPATH|PYTHONOPTIMIZE|PYTHONIOENCODING|PYTHONWARNINGS'
OWN_SHELL_ASIDE+='|PYTHONWARNDEFAULTENCODING|PYTHONCOERCECLOCALE|PYTHONDEBUG|PYTHONDEVMODE|PYTHONDUMPREFS'
OWN_SHELL_ASIDE+='|PYTHONMALLOCSTATS|PYTHONPROFILEIMPORTTIME|PYTHONVERBOSE'
# variables of ours, because a rank would get our value; our local variables are all in small letters
OWN_SHELL_ASIDE+='|REPLY|BASH_REMATCH|ARGUMENTS|OPTIONS|TRAINER_ARGUMENTS|OPTION_TABLE|SYNONYMS|MPIRUN_TABLE?(_OF_MCA)|PROGRAM|LOG_@(BEFORE|LATER|NAME|PLAIN|QUIET)|PYTHON_PROBLEM'
OWN_SHELL_ASIDE+='|@(AGENT|CARRIED|CLI|CLOCK|CONSOLE|DOCTOR|ENGINE|HELP|LIMITS|LIVE|MEMBERS|MONITOR|MPIRUN_WORDS|OUTCOME|OUTPUT|OWN_SHELL|PAGE|PLAN|PLOGS|PROCESSES)_*'
OWN_SHELL_ASIDE+='|@(ALIKE|ATTEMPTS|ELASTIC|JUDGING|PODS|RANK_ENTRY|REPORT|STACKS|STOPPING|SUPERVISE|SYSTEM|WATCH)_*|[a-z_]*([a-z0-9_])'

# own_shell::_aside: the names of all variables to put aside. In other locales, a-z of bash 4 has capital letters, too.
own_shell::_aside() {
  LC_ALL=C
  shopt -s extglob
  compgen -e -X "!@($OWN_SHELL_ASIDE)" || : # there may be none
}

# own_shell::_take RECORD: puts the caller's variables aside. RECORD is LAUNCH_SHELL. The variables of this function are
# not local, because a local one would hide that of the caller.
own_shell::_take() {
  OWN_SHELL_NAMES=$(own_shell::_aside) # before others of ours are set
  for OWN_SHELL_NAME in $OWN_SHELL_NAMES; do
    [[ $OWN_SHELL_NAME != @(SHELLOPTS|BASHOPTS|_|container) ]] || continue # the doctor asks for container
    own_shell::keep "$OWN_SHELL_NAME" "${!OWN_SHELL_NAME}"
    unset "$OWN_SHELL_NAME"
  done
  own_shell::_take_options "$1"
}

# own_shell::_take_options RECORD: puts aside what bash has changed itself: options, and EXECIGNORE.
own_shell::_take_options() {
  local record=${1#*/} shell_options bash_options
  record=${record#*/} shell_options=${record%%/*}
  record=${record#*/} bash_options=${record%%/*}
  [[ $record != */* ]] || own_shell::keep EXECIGNORE "${record#*/}"
  if [[ $OWN_SHELL_NAMES == *BASHOPTS* ]]; then
    own_shell::keep BASHOPTS "$bash_options"
    export -n BASHOPTS # these two cannot be unset
  fi
  if [[ $OWN_SHELL_NAMES == *SHELLOPTS* ]]; then # exported options are not for us
    own_shell::keep SHELLOPTS "$shell_options"
    export -n SHELLOPTS
  elif [[ $shell_options == *xtrace* ]]; then # typed as: bash -x scripts/ascend2p.sh
    set -x
  fi
}

# own_shell::keep NAME VALUE: what is kept already counts, because it is the launcher's: on another host an agent may
# find a second one.
own_shell::keep() {
  set -- "LAUNCH_KEPT_$1" "$2"
  [[ -n ${!1+set} ]] || export "$1=$2"
}

# own_shell::give NAME VALUE: a variable for the ranks alone, as if it had been put aside. Fails if NAME is none.
own_shell::give() {
  export "LAUNCH_KEPT_$1=$2"
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
