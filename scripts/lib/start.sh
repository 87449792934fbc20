# shellcheck shell=bash
# The only library of the scripts: finds Python and replaces itself with the launcher, tools/launch/main.py.
#
#   . start.sh ENGINE ARGUMENT... KEY=VALUE... -- WORD...      the script's declarations, and the user's arguments
#   . start.sh main:FILE WORD...                               runs this Python command instead
#
# The ranks inherit the caller's environment. This file must not change it, and the environment must not change what this
# file does. An exported function replaces the command with its name. In posix mode it cannot replace `.`, `exec` and
# `unset`. So the first line of a script turns posix mode on. LAUNCH_CALLER records the mode before, and bash's options:
# Python restores both. (With the option -k, words such as devices=0 would be assignments.)
# Commands that a function may replace run in subshells without the function. Python gets -E -s, so that the user's
# variables and packages do not affect it. No bash script can prevent what BASH_ENV does before the first line.

case ${BASH_VERSINFO[5]} in
  *-linux*) ;;
  *)
    LAUNCH_SHOWN=${BASH_VERSINFO[5]/*-darwin*/macOS}
    case ${LAUNCH_LANG:-${LC_ALL:-${LC_MESSAGES:-${LANG-}}}} in
      zh*) LAUNCH_SHOWN="这里是 $LAUNCH_SHOWN；需要 Linux：请使用其他机器、虚拟机或容器" ;;
      *) LAUNCH_SHOWN="this is $LAUNCH_SHOWN; Linux is needed: use another machine, a virtual one or a container" ;;
    esac
    (\unset -f printf && printf '%q: %s\n' "${0##*/}" "$LAUNCH_SHOWN" >&2)
    \exit 78
    ;;
esac

# The user's $PYTHON, otherwise the Python on PATH. Another Python never replaces the one that the user names.
LAUNCH_PYTHON=$(
  \unset -f type # a function with this name, and the list of programs that bash must not find
  \unset EXECIGNORE
  type -P -- "${PYTHON:-python}" || { [[ -z ${PYTHON-} ]] && type -P python3; }
) || LAUNCH_PYTHON=''
# Only a program with another name is tested for being a Python: the test takes as long as a start of Python.
case ${LAUNCH_PYTHON##*/} in
  '' | python | python[0-9] | python[0-9].[0-9]* | pypy*) LAUNCH_WORD=program ;;
  *) LAUNCH_WORD=$("$LAUNCH_PYTHON" -E -s -c 'print("program")' </dev/null 2>/dev/null) || LAUNCH_WORD='' ;;
esac
if [[ -z $LAUNCH_PYTHON || $LAUNCH_WORD != program ]]; then
  LAUNCH_SHOWN=$(\unset -f printf && if [[ ${PYTHON-} == *[![:alnum:]_./-]* ]]; then LC_ALL=C printf %q "$PYTHON"; else printf %s "${PYTHON-}"; fi)
  [[ ! -x ${PYTHON:-.}/bin/python ]] || LAUNCH_WORD=folder
  case ${LAUNCH_LANG:-${LC_ALL:-${LC_MESSAGES:-${LANG-}}}}/${PYTHON:+named}/${LAUNCH_PYTHON:+found}$LAUNCH_WORD in
    zh*/named/*folder) LAUNCH_SHOWN="PYTHON=$LAUNCH_SHOWN 是文件夹；请把它设为 $LAUNCH_SHOWN/bin/python" ;;
    zh*/named/found) LAUNCH_SHOWN="PYTHON=$LAUNCH_SHOWN 不是 Python；请把它设为 3.9 或更高版本的 Python，或取消设置" ;;
    zh*/named/*) LAUNCH_SHOWN="PYTHON=$LAUNCH_SHOWN 不是程序；请把它设为 3.9 或更高版本的 Python，或取消设置" ;;
    zh*) LAUNCH_SHOWN='PATH 中没有 python；请激活装有 MindSpore 的环境' ;;
    */named/*folder) LAUNCH_SHOWN="PYTHON=$LAUNCH_SHOWN is a folder; set it to $LAUNCH_SHOWN/bin/python" ;;
    */named/found) LAUNCH_SHOWN="PYTHON=$LAUNCH_SHOWN is not a Python; set it to a Python of 3.9 or later, or unset it" ;;
    */named/*) LAUNCH_SHOWN="PYTHON=$LAUNCH_SHOWN is not a program; set it to a Python of 3.9 or later, or unset it" ;;
    *) LAUNCH_SHOWN='no python on PATH; activate the environment that has MindSpore' ;;
  esac
  if [[ -z ${PYTHON-} && -x ${LAUNCH_LIB%/scripts/lib}/.venv/bin/python ]]; then
    LAUNCH_SHOWN+="; this project has one: source ${LAUNCH_LIB%/scripts/lib}/.venv/bin/activate"
  fi
  (\unset -f printf && printf '%q: %s\n' "${0##*/}" "$LAUNCH_SHOWN" >&2)
  \exit 78
fi

case $1 in
  main:*) \exec "$LAUNCH_PYTHON" -E -s "${LAUNCH_LIB%/scripts/lib}/${1#main:}" "${@:2}" ;; # a command in Python
  *)
    # During its start, Ctrl-C would end Python with a traceback. So INT is ignored until main.py restores the setting.
    LAUNCH_IGNORED=$(</proc/$$/status) && LAUNCH_IGNORED=${LAUNCH_IGNORED#*SigIgn:?} && LAUNCH_IGNORED=${LAUNCH_IGNORED%%$'\n'*}
    \trap '' INT
    \exec "$LAUNCH_PYTHON" -E -s "${LAUNCH_LIB%/scripts/lib}/tools/launch/main.py" \
      "script=$0" "caller=$LAUNCH_CALLER" "ignored=$LAUNCH_IGNORED" "$@"
    ;;
esac
