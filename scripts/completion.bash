# shellcheck shell=bash
# Bash completion for this project's scripts and Python commands. In ~/.bashrc:
#
#   source /path/to/project/scripts/completion.bash
#
# Then TAB completes options and their values, however the command is typed:
#
#   bash scripts/ascend4p.sh --dev<TAB>      scripts/ascend4p.sh --console <TAB>
#   python hccl_tools/hccl_tools.py --<TAB>
#
# What may come next, tools/front/tab/ knows, as for mslaunch. An installed mslaunch has: mslaunch --completion bash

if [[ -z ${BASH_VERSION-} || $BASH_VERSION == [1-3].* ]]; then
  return 0 # no bash, or one without associative arrays
fi

MINDSPORE_LAUNCH_ROOT=$(readlink -f -- "${BASH_SOURCE[0]}")
MINDSPORE_LAUNCH_ROOT=${MINDSPORE_LAUNCH_ROOT%/scripts/*}
declare -gA MINDSPORE_LAUNCH_BEFORE # interpreter -> its earlier completion; kept when this file is read again
# shellcheck source=tools/front/tab/tab.bash
source "$MINDSPORE_LAUNCH_ROOT/tools/front/tab/tab.bash"

# _mindspore_launch COMMAND REPLACED BEFORE: what `complete -F` calls; fills COMPREPLY, or leaves it empty for file names.
_mindspore_launch() {
  local at=0 python=${PYTHON:-python}
  COMPREPLY=()
  if [[ -n ${MINDSPORE_LAUNCH_BEFORE[${COMP_WORDS[0]##*/}]+set} ]]; then # bash, python: the script comes later
    for ((at = 1; at < COMP_CWORD; at++)); do
      [[ ${COMP_WORDS[at]} == -* ]] || break
    done
  fi
  if ((at >= COMP_CWORD)) || ! _mindspore_launch_is_ours "${COMP_WORDS[at]}"; then
    _mindspore_launch_before "$@"
    return
  fi
  [[ -n ${PYTHON-} ]] || type -P python >/dev/null || python=python3
  # shellcheck disable=SC2034 # read by _mslaunch_fill
  local -a _mslaunch_ask=("$python" -I -S "$MINDSPORE_LAUNCH_ROOT/tools/front/tab/answer.py")
  _mslaunch_fill file "$2"
}

# _mindspore_launch_is_ours WORD: whether it is a command of this project.
_mindspore_launch_is_ours() {
  local path=${1/#\~\//$HOME/}
  [[ $path == *.@(sh|py) && -f $path ]] || return 1
  path=$(readlink -f -- "$path")
  [[ $path == "$MINDSPORE_LAUNCH_ROOT"/@(scripts|hccl_tools|tools)/+([^/]) ]]
}

# _mindspore_launch_before WORD...: completes another project's script as before this file was read.
_mindspore_launch_before() {
  local before=${MINDSPORE_LAUNCH_BEFORE[${COMP_WORDS[0]##*/}]-}
  [[ -z $before ]] || "$before" "$@"
}

_mindspore_launch_register() {
  local program path spec
  for program in bash sh python python3; do
    # bash-completion loads completions on demand: load this one now, so that it is kept.
    if declare -F _completion_loader >/dev/null; then
      _completion_loader "$program" >/dev/null 2>&1
    fi
    spec=$(complete -p "$program" 2>/dev/null) || spec=''
    MINDSPORE_LAUNCH_BEFORE[$program]=${MINDSPORE_LAUNCH_BEFORE[$program]-}
    if [[ $spec =~ -F\ ([^ ]+) && ${BASH_REMATCH[1]} != _mindspore_launch ]]; then
      MINDSPORE_LAUNCH_BEFORE[$program]=${BASH_REMATCH[1]}
    fi
    complete -o bashdefault -o default -F _mindspore_launch "$program"
  done
  for path in "$MINDSPORE_LAUNCH_ROOT"/scripts/*.sh "$MINDSPORE_LAUNCH_ROOT"/{hccl_tools,tools}/*.py; do
    if [[ -x $path ]]; then
      complete -o bashdefault -o default -F _mindspore_launch "${path##*/}"
    fi
  done
}

_mindspore_launch_register
