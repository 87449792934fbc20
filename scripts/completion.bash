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
# Each shell runs a command's --help once, to learn its options.

if [[ -z ${BASH_VERSION-} || $BASH_VERSION == [1-3].* ]]; then
  return 0 # no bash, or one without associative arrays
fi

MINDSPORE_LAUNCH_ROOT=$(readlink -f -- "${BASH_SOURCE[0]}")
MINDSPORE_LAUNCH_ROOT=${MINDSPORE_LAUNCH_ROOT%/scripts/*}
declare -gA MINDSPORE_LAUNCH_HELP=() # command -> one line "NAME VALUE" per option
declare -gA MINDSPORE_LAUNCH_BEFORE  # interpreter -> its earlier completion; kept when this file is read again

# _mindspore_launch: what `complete -F` calls; fills COMPREPLY, or leaves it empty for file names.
_mindspore_launch() {
  local at=0 current=${COMP_WORDS[COMP_CWORD]-} previous=${COMP_WORDS[COMP_CWORD-1]-} i
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
  _mindspore_launch_ask "${COMP_WORDS[@]:0:at}" "${COMP_WORDS[at]/#\~\//$HOME/}"
  for ((i = at + 1; i < COMP_CWORD; i++)); do
    [[ ${COMP_WORDS[i]} != -- ]] || return 0                                               # the trainer's words
    [[ ${COMP_WORDS[at]} != *.sh ]] || ! _mindspore_launch_begins_program "$i" || return 0 # and the program's
  done
  # --name=value comes as three words
  if [[ $previous == = ]]; then
    previous=${COMP_WORDS[COMP_CWORD-2]}
  elif [[ $current == = ]]; then
    current=''
  fi
  _mindspore_launch_value "$previous"
  if [[ -n $REPLY && ($REPLY != '[RUN]' || $current != -*) ]]; then
    _mindspore_launch_offer_value "$REPLY" "$current"
  elif [[ $current == -* ]]; then
    _mindspore_launch_offer_names "$current"
  fi
}

# _mindspore_launch_is_ours WORD: whether it is a command of this project.
_mindspore_launch_is_ours() {
  local path=${1/#\~\//$HOME/}
  [[ $path == *.@(sh|py) && -f $path ]] || return 1
  path=$(readlink -f -- "$path")
  [[ $path == "$MINDSPORE_LAUNCH_ROOT"/@(scripts|hccl_tools|tools)/+([^/]) ]]
}

# _mindspore_launch_begins_program I: whether word I is a program, whose words follow, and not the value of an option.
_mindspore_launch_begins_program() {
  local before=${COMP_WORDS[$1-1]}
  [[ ${COMP_WORDS[$1]} == @(*.py|*.sh|-m|python*([0-9.])|bash|pytest) ]] || return 1
  [[ $before != = ]] || before=${COMP_WORDS[$1-2]}
  _mindspore_launch_value "$before"
  [[ -z $REPLY ]]
}

# _mindspore_launch_before WORD...: completes another project's script as before this file was read.
_mindspore_launch_before() {
  local before=${MINDSPORE_LAUNCH_BEFORE[${COMP_WORDS[0]##*/}]-}
  [[ -z $before ]] || "$before" "$@"
}

# _mindspore_launch_ask WORD...: the options of the command WORD... in MINDSPORE_LAUNCH_OPTIONS.
_mindspore_launch_ask() {
  local key=$* line found=''
  if [[ -z ${MINDSPORE_LAUNCH_HELP[$key]-} ]]; then
    while IFS= read -r line; do
      # "  -c FILE, --config FILE   the config" and "  --config FILE", with the text below it
      [[ $line =~ ^\ \ (-[^\ ].*)$ ]] || continue
      line=${BASH_REMATCH[1]%%  *}
      while [[ $line =~ ^(--?[a-zA-Z0-9][-a-zA-Z0-9_]*)(\ ([^,{]+|\{[^\}]*\}))?(,\ )?(.*)$ ]]; do
        found+="${BASH_REMATCH[1]} ${BASH_REMATCH[3]}"$'\n'
        line=${BASH_REMATCH[5]}
      done
    done < <("$@" --help 2>/dev/null </dev/null)
    MINDSPORE_LAUNCH_HELP[$key]=$found
  fi
  MINDSPORE_LAUNCH_OPTIONS=${MINDSPORE_LAUNCH_HELP[$key]}
}

# _mindspore_launch_value WORD: the value that the option takes, in REPLY; empty for a flag, or if it is not an option.
_mindspore_launch_value() {
  local name takes
  REPLY=''
  while read -r name takes; do
    [[ ${name//-/_} != "${1//-/_}" ]] || REPLY=$takes
  done <<<"$MINDSPORE_LAUNCH_OPTIONS"
}

# _mindspore_launch_offer_value TAKES CURRENT
_mindspore_launch_offer_value() {
  case $1 in
    *'|'* | '{'*) mapfile -t COMPREPLY < <(compgen -W "${1//[][\{\},|]/ }" -- "$2") ;;
    FILE | FILE\ * | '[RUN]') ;; # left to bash; after [RUN] a config may follow
    DIR) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    *) compopt +o default +o bashdefault 2>/dev/null ;; # a number, an address: no file names
  esac
}

# _mindspore_launch_offer_names CURRENT: with hyphens or underscores, as the user began.
_mindspore_launch_offer_names() {
  local name _takes names=''
  while read -r name _takes; do
    [[ $name == --* ]] || continue
    name=${name:2}
    if [[ ${1:2} == *-* ]]; then
      names+=" --${name//_/-}"
    else
      names+=" --${name//-/_}"
    fi
  done <<<"$MINDSPORE_LAUNCH_OPTIONS"
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$1" | sort -u)
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
