# shellcheck shell=bash
# The page about this machine. tools/doctor/main.py prints it. Without a suitable Python, this file prints what the
# shell can find out, and reports Python as a problem. Everything here works with bash 3.2, which cannot launch.

# shellcheck disable=SC2154 # the path of the script that reads this file; BASH_SOURCE is what the caller exported
LAUNCH_LIB=${LAUNCH_SCRIPT%/*}/lib
LAUNCH_ROOT=${LAUNCH_LIB%/scripts/lib}
DOCTOR_NEEDS=3.9 # the Python that launching needs

for DOCTOR_PART in own_shell language log system option_table cli help python; do
  # shellcheck source=/dev/null # each of them is checked as a file of its own
  source "$LAUNCH_LIB/$DOCTOR_PART.sh"
done

readonly DOCTOR_VERSION='^([0-9]+)\.([0-9]+)\.[0-9]+$' # bash 3.2 cannot parse it inside [[ ]]

DOCTOR_FORMAT=text
DOCTOR_PYTHON='' # the interpreter that a launch would use
DOCTOR_WHY=''    # why it is not usable; empty if it is
DOCTOR_REMEDY=''
DOCTOR_SEPARATOR='' # between two lines of JSON
DOCTOR_STATUSES=''  # the statuses of all lines so far, each after a blank

# doctor::main WORD...: prints the page on stdout; exit 0, 1 with problems, 2 usage.
doctor::main() {
  help::exit_codes $"0 no problem, 1 problems, 2 usage."
  cli::declare 'format log_dir hccn_conf lang help'
  cli::parse '' "$@"
  cli::choice format text
  DOCTOR_FORMAT=$REPLY
  doctor::_find_python
  system::problem
  if [[ -z $DOCTOR_WHY && -z $REPLY ]]; then
    # Each option is one word, --NAME=VALUE, because its value may begin with a hyphen.
    exec "$DOCTOR_PYTHON" "$LAUNCH_ROOT/tools/doctor/main.py" --shell "$BASH_VERSION" ${OPTIONS[@]+"${OPTIONS[@]/#/--}"}
  fi
  doctor::_page
  exit 1 # an unsuitable Python or operating system is a problem
}

# ---- the interpreter -------------------------------------------------------------------------------

# Finds the interpreter that a launch would use, and checks that it is new enough.
doctor::_find_python() {
  local version
  local -a within=()
  python::find
  DOCTOR_WHY=$PYTHON_PROBLEM
  DOCTOR_REMEDY=$"activate an environment with Python $DOCTOR_NEEDS or later, or name its Python in PYTHON"
  [[ -z $DOCTOR_WHY ]] || return 0
  # The full path: if PATH is empty, a Python that is started by its bare name cannot find its own folder.
  DOCTOR_PYTHON=$(command -v -- "$PYTHON")
  if command -v timeout >/dev/null; then
    within=(timeout -k 1 20)
  fi
  version=$(${within[@]+"${within[@]}"} "$DOCTOR_PYTHON" -c \
    'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null </dev/null) || version=''
  if [[ ! $version =~ $DOCTOR_VERSION ]]; then
    DOCTOR_WHY=$"$DOCTOR_PYTHON does not start"
  elif ((BASH_REMATCH[1] * 100 + BASH_REMATCH[2] < ${DOCTOR_NEEDS%.*} * 100 + ${DOCTOR_NEEDS#*.})); then
    DOCTOR_WHY=$"$DOCTOR_PYTHON is Python $version; $DOCTOR_NEEDS or later is needed"
  fi
}

# ---- what the shell knows --------------------------------------------------------------------------

doctor::_page() {
  local name devices
  doctor::_open
  name=$(sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' /etc/os-release 2>/dev/null) || name=''
  system::problem
  doctor::_verdict OS "$REPLY" $"use another machine, a virtual one or a container" "${name:+ok}" "${name:-$"there is no /etc/os-release"}"
  doctor::_line kernel ok "$(uname -srm 2>/dev/null || printf '%s' "$SYSTEM_MACHINE")"
  system::bash_problem
  doctor::_verdict bash "$REPLY" $"install a newer bash" ok "$BASH_VERSION"
  doctor::_verdict Python "$DOCTOR_WHY" "$DOCTOR_REMEDY" ok "$DOCTOR_PYTHON"
  devices=$(printf '%s\n' /dev/davinci[0-9]* | sed -n 's|^/dev/davinci\([0-9]*\)$|\1|p' | sort -n | paste -sd , -) || devices=''
  doctor::_line NPUs "${devices:+ok}" "${devices:-$"no /dev/davinci0 and so on"}"
  doctor::_line $"open files" ok "$(ulimit -n) (ulimit -n)"
  doctor::_line $"processes" ok "$(ulimit -u) (ulimit -u)"
  doctor::_line $"the rest" unknown $"versions, addresses, limits and ports need Python"
  doctor::_close
}

# doctor::_verdict NAME PROBLEM REMEDY STATUS TEXT: a line with the PROBLEM, or if that is empty with STATUS and TEXT.
doctor::_verdict() {
  if [[ -n $2 ]]; then
    doctor::_line "$1" problem "$2" "$3"
  else
    doctor::_line "$1" "$4" "$5"
  fi
}

# doctor::_line NAME STATUS TEXT [REMEDY]: one line of the page; an empty STATUS is absent.
doctor::_line() {
  local -r name=$1 status=${2:-absent} remedy=${4-} tilde='~'
  local text=$3
  # The home folder contains the user's name, which does not belong in a bug report.
  [[ ${HOME-} != /?* ]] || text=${text//"$HOME"/$tilde}
  log::harmless "$text"
  text=$REPLY
  DOCTOR_STATUSES+=" $status"
  if [[ $DOCTOR_FORMAT == json ]]; then
    printf '%s    {"section": "System"' "$DOCTOR_SEPARATOR"
    doctor::_member name "$name"
    doctor::_member status "$status"
    doctor::_member text "$text"
    doctor::_member remedy "$remedy"
    printf '}'
    DOCTOR_SEPARATOR=$',\n'
    return 0
  fi
  printf '  %-7s  %-10s  %s\n' "$status" "$name" "$text"
  [[ -z $remedy ]] || printf '%23s-> %s\n' '' "$remedy"
}

# doctor::_member KEY TEXT: prints a member of a JSON object, not the first one.
doctor::_member() {
  local text=${2//\\/\\\\}
  text=${text//\"/\\\"}
  printf ', "%s": "%s"' "$1" "${text//[[:cntrl:]]/ }"
}

doctor::_open() {
  local made
  made=$(date -u +%Y-%m-%dT%H:%M:%SZ 2>/dev/null) || made=unknown
  if [[ $DOCTOR_FORMAT == json ]]; then
    printf '{\n  "made": "%s",\n  "lines": [\n' "$made"
  else
    printf '%s\n\n' $"Report of this machine, $made"
  fi
}

doctor::_close() {
  local status separator=''
  if [[ $DOCTOR_FORMAT != json ]]; then
    doctor::_count problem
    if ((REPLY == 1)); then
      printf '\n%s\n' $"1 problem: fix it before you launch."
    else
      printf '\n%s\n' $"$REPLY problems: fix them before you launch."
    fi
    return 0
  fi
  printf '\n  ],\n  "status": "problem",\n  "counts": {'
  for status in ok absent unknown warning problem; do
    doctor::_count "$status"
    printf '%s"%s": %d' "$separator" "$status" "$REPLY"
    separator=', '
  done
  printf '}\n}\n'
}

# doctor::_count STATUS: how many lines have it, in REPLY.
doctor::_count() {
  local status
  REPLY=0
  for status in $DOCTOR_STATUSES; do
    [[ $status != "$1" ]] || REPLY=$((REPLY + 1))
  done
}
