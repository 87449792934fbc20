# shellcheck shell=bash
# What TAB does in bash. `mslaunch --completion bash` prints this file, with the words that start answer.py before it;
# scripts/completion.bash reads it. One start of Python answers one TAB. What it answers is text: nothing here expands it.

# _mslaunch_fill front|file REPLACED: asks what may come next, and fills COMPREPLY or lets bash itself list files.
_mslaunch_fill() {
  local line native='' is_name=''
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      'native '*) native=${line#native } ;;
      'word '*) COMPREPLY+=("${line#word }") ;;
      'name '*) is_name=yes COMPREPLY+=("${line#name }") ;;
    esac
  done < <("${_mslaunch_ask[@]}" bash "$1" "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null </dev/null)
  if [[ -n $is_name ]]; then
    compopt -o filenames # bash quotes them, and puts a slash behind a folder
  elif ((${#COMPREPLY[@]} == 0)); then
    case $native in
      folders) compopt -o dirnames +o default +o bashdefault ;;
      hosts)
        mapfile -t COMPREPLY < <(compgen -A hostname -- "$2")
        compopt +o default +o bashdefault
        ;;
      nothing) compopt +o default +o bashdefault ;;
    esac
  fi
}

# _mslaunch COMMAND REPLACED BEFORE: what `complete -F` calls.
_mslaunch() {
  _mslaunch_fill front "$2"
}

if [[ -n ${_mslaunch_ask+set} && ${BASH_VERSION-} != [1-3].* ]]; then
  complete -o bashdefault -o default -F _mslaunch mslaunch
fi
