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

# What is put aside.
OWN_SHELL_ASIDE='TMOUT FUNCNEST CDPATH GLOBIGNORE GLOBSORT CHILD_MAX BASH_COMPAT BASH_LOADABLES_PATH' # bash
OWN_SHELL_ASIDE+=' POSIXLY_CORRECT BASH_ENV ENV'                                                      # and scripts that we call
OWN_SHELL_ASIDE+=' GREP_OPTIONS'                                                                      # grep
OWN_SHELL_ASIDE+=' PYTHONINSPECT PYTHONSAFEPATH'                                                      # Python

# What LAUNCH_SHELL holds.
readonly OWN_SHELL_RECORD='^[0-9]+/(posix)?/([^/]*)/([^/]*)(/(.*))?$'

# own_shell::_take: puts the variables aside.
own_shell::_take() {
  local name shell_options='' bash_options=''
  if [[ ${LAUNCH_SHELL-} =~ $OWN_SHELL_RECORD ]]; then
    [[ -n ${BASH_REMATCH[1]} ]] || unset POSIXLY_CORRECT # the first lines have set it
    shell_options=${BASH_REMATCH[2]} bash_options=${BASH_REMATCH[3]}
    [[ -z ${BASH_REMATCH[4]} ]] || own_shell::_keep EXECIGNORE "${BASH_REMATCH[5]}"
  fi
  unset LAUNCH_SHELL
  for name in $OWN_SHELL_ASIDE; do
    if own_shell::_is_exported "$name"; then
      own_shell::_keep "$name" "${!name}"
      unset "$name"
    fi
  done
  if own_shell::_is_exported BASHOPTS; then
    own_shell::_keep BASHOPTS "$bash_options"
    export -n BASHOPTS # it cannot be unset
  fi
  if own_shell::_is_exported SHELLOPTS; then
    own_shell::_keep SHELLOPTS "$shell_options"
    export -n SHELLOPTS
  elif [[ $shell_options == *xtrace* ]]; then # typed as: bash -x scripts/ascend2p.sh
    set -x
  fi
}

own_shell::_is_exported() {
  [[ -n ${!1+set} ]] && compgen -e -X "!$1" "$1" >/dev/null
}

# own_shell::_keep NAME VALUE: what is kept already counts, because it is the launcher's: on another host an agent may
# find a second one.
own_shell::_keep() {
  local -r kept=LAUNCH_KEPT_$1
  [[ -n ${!kept+set} ]] || export "$kept=$2"
}

# own_shell::print_exports: prints the environment that own_shell::leave gives to a command, as shell commands.
own_shell::print_exports() {
  local kept
  if [[ -z ${!LAUNCH_KEPT_@} ]]; then
    declare -px
    return
  fi
  (
    for kept in ${!LAUNCH_KEPT_@}; do
      printf 'declare -x %s=%q\n' "${kept#LAUNCH_KEPT_}" "${!kept}"
      unset "$kept"
    done
    declare -px
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
  [[ $1 != *=* ]] || words+=(nice -n 0) # env would take the name of such a command for a variable
  exec "${words[@]}" "$@"
}

set +o posix
if [[ -n ${FUNCNEST+set} ]]; then # first, because it limits how functions call functions
  export LAUNCH_KEPT_FUNCNEST=$FUNCNEST
  unset FUNCNEST
fi
own_shell::_take
