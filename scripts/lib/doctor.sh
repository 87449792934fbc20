# shellcheck shell=bash
# The page about this machine. tools/doctor/main.py makes it; without a Python that can, what the shell knows
# is the page, and the missing Python is its problem. Works with every bash, also one too old to launch.

DOCTOR_LIB=${BASH_SOURCE[0]%/*}
DOCTOR_ROOT=${DOCTOR_LIB%/scripts/lib}
DOCTOR_NEEDS=3.9 # the Python that launching needs

# shellcheck source=scripts/lib/log.sh
source "$DOCTOR_LIB/log.sh"

readonly DOCTOR_VERSION='^([0-9]+)\.([0-9]+)\.[0-9]+$' # bash 3.2 cannot read it within [[ ]]

DOCTOR_FORMAT=text
DOCTOR_OPTIONS=() # for tools/doctor/main.py
DOCTOR_PYTHON=''  # the interpreter that a launch would take
DOCTOR_WHY=''     # why it cannot be taken; empty when it can
DOCTOR_REMEDY=''
DOCTOR_SEPARATOR='' # between two lines of JSON
DOCTOR_STATUSES=''  # of all lines so far, a blank before each

# doctor::main WORD...: the page on stdout; exit 0, 1 with problems, 2 usage.
doctor::main() {
  doctor::_parse "$@"
  doctor::_find_python
  if [[ -z $DOCTOR_WHY && $OSTYPE == linux* ]]; then
    exec "$DOCTOR_PYTHON" "$DOCTOR_ROOT/tools/doctor/main.py" --shell "$BASH_VERSION" \
      ${DOCTOR_OPTIONS[@]+"${DOCTOR_OPTIONS[@]}"}
  fi
  doctor::_page
  exit 1 # a Python that cannot be taken is a problem, and so is another system
}

# ---- the command line ------------------------------------------------------------------------------

doctor::_parse() {
  local name value
  while (($#)); do
    name=${1%%=*}
    name=${name//-/_}
    case $name in
      __help | _h) doctor::_help && exit 0 ;;
      __format | __log_dir | __hccn_conf) ;;
      __*) doctor::_usage "unknown option ${1%%=*}" ;;
      _?*) doctor::_usage "unknown option $1" ;;
      *) log::one_line "$1" && doctor::_usage "$REPLY is one argument too many" ;;
    esac
    name=${name#__}
    if [[ $1 == *=* ]]; then
      value=${1#*=}
    else
      (($# > 1)) && [[ $2 != --* ]] || doctor::_usage "--$name needs a value"
      value=$2
      shift
    fi
    shift
    [[ -n $value ]] || doctor::_usage "--$name needs a value"
    if [[ $name == format ]]; then
      [[ $value == text || $value == json ]] || doctor::_usage "--format $value: text and json are known"
      DOCTOR_FORMAT=$value
    fi
    DOCTOR_OPTIONS+=("--$name=$value") # one word: a value may begin with a hyphen
  done
}

doctor::_usage() {
  log::die 2 "$1; see: bash $0 --help"
}

# The script's header comment.
doctor::_help() {
  local line
  while IFS= read -r line; do
    [[ $line != '#!'* ]] || continue
    [[ $line == '#'* ]] || break
    line=${line#\#}
    printf '%s\n' "${line# }"
  done <"$0"
}

# ---- the interpreter -------------------------------------------------------------------------------

# The one that a launch would take, in DOCTOR_PYTHON, and whether it is new enough.
doctor::_find_python() {
  local candidate version
  local -a within=()
  for candidate in ${PYTHON:+"$PYTHON"} python python3; do
    # Its path: started by its bare name with an empty PATH, Python would not know where it is.
    DOCTOR_PYTHON=$(command -v "$candidate") && break
    [[ -z ${PYTHON-} ]] || break # what the user names is taken, or nothing
  done
  DOCTOR_REMEDY="activate an environment with Python $DOCTOR_NEEDS or later, or name its Python in PYTHON"
  if [[ -z $DOCTOR_PYTHON ]]; then
    DOCTOR_WHY='there is no python on PATH'
    [[ -z ${PYTHON-} ]] || DOCTOR_WHY="PYTHON=$PYTHON is not a program"
    return 0
  fi
  ! command -v timeout >/dev/null || within=(timeout -k 1 20)
  version=$(${within[@]+"${within[@]}"} "$DOCTOR_PYTHON" -c \
    'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null </dev/null) || version=''
  if [[ ! $version =~ $DOCTOR_VERSION ]]; then
    DOCTOR_WHY="$DOCTOR_PYTHON does not start"
  elif ((BASH_REMATCH[1] * 100 + BASH_REMATCH[2] < ${DOCTOR_NEEDS%.*} * 100 + ${DOCTOR_NEEDS#*.})); then
    DOCTOR_WHY="$DOCTOR_PYTHON is Python $version; $DOCTOR_NEEDS or later is needed"
  fi
}

# ---- what the shell knows --------------------------------------------------------------------------

doctor::_page() {
  local name devices
  doctor::_open
  name=$(sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\)"\{0,1\}$/\1/p' /etc/os-release 2>/dev/null) || name=''
  if [[ $OSTYPE == linux* ]]; then
    doctor::_line OS "${name:+ok}" "${name:-there is no /etc/os-release}"
  else
    doctor::_line OS problem "${OSTYPE/#darwin*/macOS}; Linux is needed to launch" 'take another machine, a virtual one or a container'
  fi
  doctor::_line kernel ok "$(uname -srm 2>/dev/null || printf '%s' "$OSTYPE")"
  case $BASH_VERSION in
    [1-3].* | 4.[01].*) doctor::_line bash problem "$BASH_VERSION; 4.2 or later is needed to launch" 'install a newer bash' ;;
    *) doctor::_line bash ok "$BASH_VERSION" ;;
  esac
  if [[ -n $DOCTOR_WHY ]]; then
    doctor::_line Python problem "$DOCTOR_WHY" "$DOCTOR_REMEDY"
  else
    doctor::_line Python ok "$DOCTOR_PYTHON"
  fi
  devices=$(printf '%s\n' /dev/davinci[0-9]* | sed -n 's|^/dev/davinci\([0-9]*\)$|\1|p' | sort -n | paste -sd , -) || devices=''
  doctor::_line NPUs "${devices:+ok}" "${devices:-no /dev/davinci0 and so on}"
  doctor::_line 'open files' ok "$(ulimit -n) (ulimit -n)"
  doctor::_line processes ok "$(ulimit -u) (ulimit -u)"
  doctor::_line 'the rest' unknown 'versions, addresses, limits and ports are looked at with Python'
  doctor::_close
}

# doctor::_line NAME STATUS TEXT [REMEDY]: one line of the page; an empty STATUS is absent.
doctor::_line() {
  local -r name=$1 status=${2:-absent} remedy=${4-} tilde='~'
  local text=$3
  # The home folder has the user's name in it, which is nobody's business in a bug report.
  [[ ${HOME-} != /?* ]] || text=${text//"$HOME"/$tilde}
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

# doctor::_member KEY TEXT: a member of a JSON object, after another one.
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
    printf 'Report of this machine, %s\n\n' "$made"
  fi
}

doctor::_close() {
  local status separator=''
  if [[ $DOCTOR_FORMAT != json ]]; then
    doctor::_count problem
    printf '\n%d problem(s): mend them before you launch.\n' "$REPLY"
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
