#!/usr/bin/env bash
# Creates or completes the environment that `make` uses. It checks first, and removes its own work if it fails.
#
# Usage: bash tools/environment.sh FOLDER EXTRA...
#
# FOLDER becomes a virtual environment with the packages of these extras of pyproject.toml; FOLDER/has-EXTRA marks an
# extra that is complete.  FOLDER/unfinished exists while a run changes FOLDER.  FOLDER.log has pip's output if it failed.
# $PYTHON names the Python to use (default: a suitable one on PATH).  pip's settings (PIP_INDEX_URL, pip.conf, proxies)
# apply.
#
# Exit: 0 everything is installed, 1 it is not (one line says why and what to do), 128+N signal N ended it.
set -u
APART= # the process group of the command that runs now

# Prints one line about a Python: its version, a module that it lacks, its C library, the processor.
readonly PROBE='
import platform, sys, sysconfig
lacks = "nothing"
for module in "venv", "ensurepip":
    try:
        __import__(module)
    except ImportError:
        lacks = module
print("%d.%d" % sys.version_info[:2], lacks, "musl" if "musl" in str(sysconfig.get_config_var("SOABI")) else "glibc", platform.machine())
'

main() {
  FOLDER=$1
  EXTRAS=("${@:2}")
  check_system
  check_folder
  local -a missing=()
  list_missing
  [[ ${#missing[@]} -gt 0 || -e $FOLDER/unfinished ]] || return 0
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'exit 129' HUP
  lock
  take_back # the remains of a run that was killed
  list_missing
  [[ ${#missing[@]} -gt 0 ]] || return 0
  check_programs
  choose_python
  check_disk
  trap 'stop; take_back' EXIT
  install
  trap - EXIT
}

die() {
  printf 'make: %s\n' "$1" >&2
  exit 1
}

# wants EXTRA: whether this extra must still be installed.
wants() {
  [[ " ${missing[*]} " == *" $1 "* ]]
}

# The extras that are missing, or older than the lists of packages, in `missing`.
list_missing() {
  local extra
  missing=()
  for extra in "${EXTRAS[@]}"; do
    [[ -e $FOLDER/has-$extra && ! pyproject.toml -nt $FOLDER/has-$extra && ! constraints.txt -nt $FOLDER/has-$extra ]] \
      || missing+=("$extra")
  done
}

check_system() {
  case $OSTYPE in
    linux*) ;;
    *) die "this is ${OSTYPE/#darwin*/macOS}; Linux is needed: use another machine, a virtual machine or a container" ;;
  esac
  ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 402)) || die "this is bash $BASH_VERSION; 4.2 or later is needed"
}

# Refuses an existing environment that make has not created, or that does not work.
check_folder() {
  local home='' version
  [[ -e $FOLDER || ! -L $FOLDER ]] || die "$FOLDER is a link to $(readlink "$FOLDER"), which does not exist: rm $FOLDER"
  [[ ! -e $FOLDER || -d $FOLDER ]] || die "$FOLDER is not a folder: move it, or choose another folder: make VENV=FOLDER"
  [[ ! -e $FOLDER/unfinished ]] || return 0
  if ! is_marked; then
    [[ -z $(ls -A "$FOLDER" 2>/dev/null) ]] \
      || die "make did not create $FOLDER and does not change it: move it, or choose another folder: make VENV=FOLDER"
    return 0
  fi
  version=$("$FOLDER/bin/python" -V 2>/dev/null)
  version=${version#Python }
  [[ -d $FOLDER/lib/python${version%.*} && $version ]] \
    || die "the Python of $FOLDER ($(readlink -m "$FOLDER/bin/python")) is missing or has changed: rm -r $FOLDER, then run make again"
  IFS= read -r home 2>/dev/null < <(cat "$FOLDER"/has-* 2>/dev/null)
  [[ -z $home || $home == "$(readlink -f "$FOLDER")" ]] \
    || die "$FOLDER was moved here from $home, where its programs look for Python: rm -r $FOLDER, then run make again"
}

# is_marked: whether some extra has been installed completely.
is_marked() {
  compgen -G "$FOLDER/has-*" >/dev/null
}

# One run at a time.  pip inherits the lock: after SIGKILL of this script the next run waits for pip's end.
lock() {
  local above
  above=$(dirname "$(readlink -m "$FOLDER")")
  mkdir -p "$above" || exit 1 # mkdir has printed the reason
  if ! type -P flock >/dev/null || ! exec 9<"$above"; then
    return 0
  fi
  if ! flock -n 9 2>/dev/null; then
    printf 'make: another make is installing into %s; waiting until it ends\n' "$FOLDER" >&2
    flock 9
  fi
}

check_programs() {
  local place=$FOLDER
  [[ -e $place ]] || place=$(dirname "$FOLDER")
  [[ -w $place ]] || die "$(readlink -f "$place") is not writable: copy the project to a folder of your own, or choose another environment: make VENV=FOLDER"
  ! wants test || type -P git >/dev/null \
    || die 'the tests need git: sudo apt-get install git (Debian, Ubuntu), sudo dnf install git (openEuler)'
}

# Puts a Python of a suitable version into PYTHON: the environment's own if it has one.
choose_python() {
  # shellcheck disable=SC2016 # $( is for the reader's shell
  local -r without_root='without root: uv python install 3.12, then make PYTHON="$(uv python find 3.12)" (https://docs.astral.sh/uv)'
  local needed='3.10 or later' why='' lacking='' seen='' candidate version lacks libc machine
  local -a candidates=(python3.12 python3.11 python3.10 python3.14 python3.13 python3 python)
  ! wants train || needed='3.10, 3.11 or 3.12' why=', for which MindSpore has wheels'
  [[ -z ${PYTHON-} ]] || candidates=("$PYTHON")
  ! is_marked || candidates=("$FOLDER/bin/python")
  for candidate in "${candidates[@]}"; do
    read -r version lacks libc machine < <("$candidate" -I -c "$PROBE" 2>/dev/null) || continue
    if ! fits "$version"; then
      seen+="${seen:+, }$candidate is $version"
    elif [[ $lacks != nothing ]]; then
      lacking=${lacking:-"$candidate lacks the module $lacks, which creates $FOLDER: sudo apt-get install python$version-venv (Debian, Ubuntu), sudo dnf install python3 python3-pip (openEuler), $without_root"}
    else
      ! wants train || [[ $libc == glibc ]] || die "MindSpore has no wheels for musl, the C library of this Linux: use one with glibc, such as Debian or openEuler"
      ! wants train || [[ $machine == x86_64 || $machine == aarch64 ]] || die "MindSpore has no wheels for $machine: use a machine with x86_64 or aarch64"
      PYTHON=$candidate
      return
    fi
  done
  ! is_marked || die "the Python of $FOLDER is not $needed$why (${seen:-it does not start}): rm -r $FOLDER, then run make again"
  [[ -z ${PYTHON-} || $lacking ]] || die "PYTHON=$PYTHON is not a Python $needed$why${seen:+ ($seen)}: choose another one, or unset PYTHON"
  [[ -z $lacking ]] || die "$lacking"
  die "no Python $needed$why, on PATH${seen:+ ($seen)}: sudo apt-get install python3-venv (Debian 12, Ubuntu), sudo dnf install python3 python3-pip (openEuler), $without_root"
}

# fits VERSION: whether the missing packages exist for this Python.
fits() {
  if wants train; then
    [[ $1 == 3.1[012] ]]
  else
    [[ $1 == 3.[1-9][0-9] ]]
  fi
}

# pip downloads wheels into FOLDER/tmp, keeps them in its cache, and installs their content into FOLDER.
check_disk() {
  # In MB: the size of an extra with everything that it needs, and of its wheels.  Not at the top of the file, because
  # bash 3, which does not know -A, must get as far as check_system.
  local -rA on_disk=([train]=3000 [docs]=190 [mpi]=40 [test]=35 [lint]=145 [browser]=45 [release]=50)
  local -rA wheels=([train]=850 [docs]=50 [mpi]=10 [test]=5 [lint]=40 [browser]=15 [release]=15)
  local -i takes=0 loads=0 needs free
  local extra disk cache=${PIP_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME-}/.cache}/pip}
  is_marked || takes=30 # an empty environment
  for extra in "${missing[@]}"; do
    takes+=${on_disk[$extra]}
    loads+=${wheels[$extra]}
  done
  read -r free disk < <(free_of "$FOLDER")
  read -r _ cache < <(free_of "$cache")
  needs=$((takes + loads))
  [[ $cache != "$disk" || ${PIP_NO_CACHE_DIR-} ]] || needs+=loads
  ((free >= needs)) || die "$FOLDER needs $needs MB for ${missing[*]}, and $disk has $free MB free: free some space, or choose a folder on another disk: make VENV=FOLDER"
  printf 'make: installing %s into %s (%d MB, up to %d MB to download); pip writes to %s.log\n' \
    "${missing[*]}" "$FOLDER" "$takes" "$loads" "$FOLDER" >&2
}

# free_of PATH: how many MB are free on the disk of this path, which may not exist yet, and the name of the disk.
free_of() {
  local path=$1
  until [[ -d $path ]]; do
    path=$(dirname "$path")
  done
  df -Pk "$path" | awk 'END { print int($4 / 1024), $6 }'
}

install() {
  local extra
  { mkdir -p "$FOLDER" && : >"$FOLDER/unfinished" && mkdir "$FOLDER/tmp"; } || exit 1 # mkdir has printed the reason
  if ! is_marked; then
    apart "$PYTHON" -I -m venv "$FOLDER" || die "$PYTHON -m venv has failed: $(tail -n 1 "$FOLDER.log")"
  fi
  local all=${missing[*]}
  # PIP_USER=0: a pip.conf with --user is not meant for an environment.  Few retries: no long wait without a network.
  TMPDIR=$(readlink -f "$FOLDER")/tmp PIP_USER=0 PIP_RETRIES=${PIP_RETRIES:-2} \
    apart "$FOLDER/bin/python" -I -m pip install --no-input --disable-pip-version-check \
    --constraint constraints.txt ".[${all// /,}]" || die "$(why_pip_failed)"
  # The packages that the project needs stay, but not the project: its copy would differ from the checkout in time.
  apart "$FOLDER/bin/python" -I -m pip uninstall --yes --disable-pip-version-check mindspore-launch || die "$(why_pip_failed)"
  for extra in "${missing[@]}"; do
    readlink -f "$FOLDER" >"$FOLDER/has-$extra"
  done
  rm -rf "$FOLDER/tmp"
  rm -f "$FOLDER/unfinished" "$FOLDER.log"
}

# apart COMMAND...: runs it in a process group of its own, which stop() ends; its output is in FOLDER.log.
apart() {
  set -m
  "$@" >"$FOLDER.log" 2>&1 </dev/null &
  APART=$!
  set +m
  wait "$APART"
}

stop() {
  [[ -z $APART ]] || ! kill -- "-$APART" 2>/dev/null || wait "$APART" 2>/dev/null
}

# Prints the reason for pip's failure, from its log.
why_pip_failed() {
  local -r log=$FOLDER.log
  local -r elsewhere='use another index or a folder of wheels (PIP_INDEX_URL=URL; PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER)'
  local -r reasons='Connection refused|Name or service not known|Temporary failure in name resolution|No address associated|Network is unreachable|No route to host|timed out|Cannot connect to proxy|Tunnel connection failed: [0-9]+|certificate verify failed|Connection reset|Failed to resolve'
  local reason
  if grep -q 'No space left on device' "$log"; then
    printf 'the disk of %s is full: free some space, or choose a folder on another disk: make VENV=FOLDER' "$FOLDER"
  elif reason=$(grep 'Retry(total=0' "$log"); then
    reason=$(grep -Eo "$reasons" <<<"$reason" | tail -n 1)
    printf 'pip cannot reach the package index (%s): check the network, or %s; details are in %s' "${reason:-no answer}" "$elsewhere" "$log"
  elif reason=$(grep -Eo 'No matching distribution found for .*' "$log"); then
    printf 'pip finds no %s for this Python and machine: %s; details are in %s' "${reason##*found for }" "$elsewhere" "$log"
  else
    printf 'pip has failed: %s; details are in %s' "$(grep -i error "$log" | tail -n 1)" "$log"
  fi
}

# Removes the work of an unfinished run: everything, or the partly installed packages of an environment that works.
take_back() {
  local packages info
  rmdir "$FOLDER" 2>/dev/null # empty
  [[ -e $FOLDER/unfinished ]] || return 0
  if is_marked; then
    rm -rf "$FOLDER/tmp"
    for packages in "$FOLDER"/lib/python*/site-packages; do
      rm -rf "$packages"/~*
      for info in "$packages"/*.dist-info; do # pip writes these two last
        [[ -e $info/INSTALLER && -e $info/RECORD ]] || rm -rf "$info"
      done
    done
  else
    find -H "$FOLDER" -mindepth 1 -maxdepth 1 ! -name unfinished -exec rm -rf -- {} +
  fi
  rm -f "$FOLDER/unfinished"
  rmdir "$FOLDER" 2>/dev/null || true
}

main "$@"
