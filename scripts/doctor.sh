#!/usr/bin/env bash
# Prints one page about this machine, to read before a launch and to paste into a bug report.
#
# Usage: bash scripts/doctor.sh [options]
#
# Each line is ok, absent (not found, and not needed), unknown, warning or problem. The line below a problem shows what
# to do. docs/doctor.md explains every line. The script changes nothing and sends nothing.
#
# Example:
#   bash scripts/doctor.sh
#   bash scripts/doctor.sh --json >machine.json
case ${BASH_VERSION-} in '') exec bash -- "$0" "$@" ;; esac                                       # typed as: sh scripts/...
LAUNCH_CALLER=${POSIXLY_CORRECT+set}/${SHELLOPTS-} POSIXLY_CORRECT=${POSIXLY_CORRECT-} && \set +k # see lib/start.sh
LAUNCH_LIB=$(\unset -f readlink && \unset EXECIGNORE && readlink -f -- "$0" 2>/dev/null) || LAUNCH_LIB=$0
LAUNCH_LIB=${LAUNCH_LIB%/*}/lib
if [[ ! -r $LAUNCH_LIB/start.sh ]]; then
  printf '%q: %q is missing: do not copy this script; call it by its path, or through a link\n' "${0##*/}" "$LAUNCH_LIB/start.sh" >&2
  \exit 78
fi

# The Python that a launch would take, and its version; both are empty where there is none. See lib/start.sh.
LAUNCH_PYTHON=$(
  \unset -f type
  \unset EXECIGNORE
  type -P -- "${PYTHON:-python}" || { [[ -z ${PYTHON-} ]] && type -P python3; }
) || LAUNCH_PYTHON=''
LAUNCH_VERSION=$(
  \unset -f type
  LAUNCH_LIMIT=$(type -P timeout) || LAUNCH_LIMIT=''
  [[ -z $LAUNCH_PYTHON ]] || ${LAUNCH_LIMIT:+"$LAUNCH_LIMIT" -k 1 20} "$LAUNCH_PYTHON" -E -s -c \
    'import sys; print("%d.%d.%d" % sys.version_info[:3])' </dev/null 2>/dev/null
) || LAUNCH_VERSION=''
case ${BASH_VERSINFO[5]}/$LAUNCH_VERSION in
  *-linux*/3.9.* | *-linux*/3.[1-9][0-9]*.* | *-linux*/[4-9].*)
    \exec "$LAUNCH_PYTHON" -E -s "${LAUNCH_LIB%/scripts/lib}/tools/doctor/main.py" "script=$0" "shell=$BASH_VERSION" -- "$@"
    ;;
esac

# No Linux, or no such Python: the page is what the shell itself can find out. Works with the bash 3.2 of macOS.
\unset -f date line local printf read say ulimit uname
\unset EXECIGNORE
\set +efu
format=text before='' comma='' ok=0 absent=0 problem=0
for word; do
  case "$before $word" in
    *' --json' | *' --format=json' | '--format json') format=json ;; # the last two: of earlier versions
  esac
  before=$word
done

# say ENGLISH CHINESE: prints the text in the user's language; what programs read is English.
say() {
  case $format/${LAUNCH_LANG:-${LC_ALL:-${LC_MESSAGES:-${LANG-}}}} in
    text/zh*) printf '%s' "$2" ;;
    *) printf '%s' "$1" ;;
  esac
}

# line NAME STATUS TEXT [REMEDY]: one line of the page; an empty STATUS is absent.
line() {
  local status=${2:-absent} text=$3 home='~' LC_ALL=C  # counts bytes
  [[ ${HOME-} != /?* ]] || text=${text//"$HOME"/$home} # the user's name does not belong in a bug report
  case $text in                                        # control characters, also those of two bytes, and what changes the direction of text
    *[[:cntrl:]]* | *$'\302'[$'\200'-$'\237']* | *$'\342\200'[$'\250'-$'\256']* | *$'\342\201'[$'\246'-$'\251']*) printf -v text %q "$text" ;;
  esac
  [[ $status != ok ]] || ok=$((ok + 1))
  [[ $status != absent ]] || absent=$((absent + 1))
  [[ $status != problem ]] || problem=$((problem + 1))
  if [[ $format == text ]]; then
    printf '  %-7s  %-10s  %s\n' "$status" "$1" "$text"
    [[ -z ${4-} ]] || printf '%23s-> %s\n' '' "$4"
    return
  fi
  text=${text//\\/\\\\}
  printf '%s    {"section": "System", "name": "%s", "status": "%s", "text": "%s", "remedy": "%s"}' \
    "$comma" "$1" "$status" "${text//\"/\\\"}" "${4-}"
  comma=$',\n'
}

made=$(date -u +%Y-%m-%dT%H:%M:%SZ 2>/dev/null) || made=unknown
case $format in
  json) printf '{\n  "made": "%s",\n  "lines": [\n' "$made" ;;
  text) printf '%s\n\n' "$(say "Report of this machine, $made" "本机报告，$made")" ;;
esac
system=${BASH_VERSINFO[5]/*-darwin*/macOS} name=''
[[ ! -r /etc/os-release ]] || while IFS='=' read -r key value; do
  [[ $key != PRETTY_NAME ]] || name=${value//\"/}
done </etc/os-release
case $system in
  *-linux*) line OS "${name:+ok}" "${name:-$(say 'there is no /etc/os-release' '没有 /etc/os-release')}" ;;
  *) line OS problem "$(say "$system; Linux is needed" "$system；需要 Linux")" "$(say 'use another machine, a virtual one or a container' '请换用其他机器、虚拟机或容器')" ;;
esac
line kernel ok "$(uname -srm 2>/dev/null || printf '%s' "${BASH_VERSINFO[5]}")"
line bash ok "$BASH_VERSION"
remedy=$(say 'activate an environment with Python 3.9 or later, or name its Python in PYTHON' '激活一个 Python 3.9 或更高版本的环境，或用 PYTHON 指定其中的 Python')
case ${LAUNCH_PYTHON:+found}${PYTHON:+named}/$LAUNCH_VERSION in
  /*) line Python problem "$(say 'no python on PATH' 'PATH 中没有 python')" "$remedy" ;;
  named/*) line Python problem "$(say "PYTHON=$PYTHON is not a program" "PYTHON=$PYTHON 不是程序")" "$remedy" ;;
  */3.9.* | */3.[1-9][0-9]*.* | */[4-9].*) line Python ok "$LAUNCH_PYTHON" ;;
  */[0-9]*.*) line Python problem "$(say "$LAUNCH_PYTHON is Python $LAUNCH_VERSION; 3.9 or later is needed" "$LAUNCH_PYTHON 是 Python $LAUNCH_VERSION；需要 3.9 或更高版本")" "$remedy" ;;
  *) line Python problem "$(say "$LAUNCH_PYTHON does not start" "$LAUNCH_PYTHON 无法启动")" "$remedy" ;;
esac
devices=''
for number in {0..63}; do
  [[ ! -e /dev/davinci$number ]] || devices+=${devices:+,}$number
done
line NPUs "${devices:+ok}" "${devices:-$(say 'no /dev/davinci0 and so on' '没有 /dev/davinci0 等设备')}"
line "$(say 'open files' '打开文件数')" ok "$(ulimit -n) (ulimit -n)"
line "$(say processes 进程数)" ok "$(ulimit -u) (ulimit -u)"
line "$(say 'the rest' 其余)" unknown "$(say 'versions, addresses, limits and ports need Python' '版本、地址、限制和端口需要 Python 才能检查')"
case $format/$problem in
  json/*) printf '\n  ],\n  "status": "problem",\n  "counts": {"ok": %d, "absent": %d, "unknown": 1, "warning": 0, "problem": %d}\n}\n' "$ok" "$absent" "$problem" ;;
  text/1) printf '\n%s\n' "$(say '1 problem: fix it before you launch.' '1 个问题：请在启动之前解决。')" ;;
  *) printf '\n%s\n' "$(say "$problem problems: fix them before you launch." "$problem 个问题：请在启动之前解决。")" ;;
esac
\exit 1 # an unsuitable Python or operating system is a problem
