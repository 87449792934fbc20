#compdef mslaunch
# What TAB does in zsh. `mslaunch --completion zsh` prints this file, with the words that start answer.py before it. One
# start of Python answers one TAB. What it answers is text: nothing here expands it, and compadd quotes names.

_mslaunch() {
  local line native= typed="${(j: :)words[1,CURRENT-1]} $PREFIX" found=1
  local -a offered named
  while IFS= read -r line; do
    case $line in
      ('native '*) native=${line#native } ;;
      ('word '*) offered+=("${line#word }") ;;
      ('name '*) named+=("${line#name }") ;;
    esac
  done < <("${_mslaunch_ask[@]}" zsh front "$typed" "$PREFIX" 2>/dev/null </dev/null)
  (($#offered)) && compadd -- "${offered[@]}" && found=0
  (($#named)) && compadd -f -- "${named[@]}" && found=0
  [[ $native == programs ]] || ((! $#named)) || return 0
  [[ $PREFIX != --*=* ]] || compset -P '*='
  case $native in
    (programs) _files -g '*.(py|sh|yaml|yml)(-.) *(-*)' && found=0 ;;
    (configs) _files -g '*.(yaml|yml)(-.)' && found=0 ;;
    (folders) _files -/ && found=0 ;;
    (hosts) _hosts && found=0 ;;
    (nothing) ;;
    (*) _files && found=0 ;;
  esac
  return found
}

if ((! $+functions[compdef])); then
  autoload -Uz compinit && compinit
fi
compdef _mslaunch mslaunch
