#!/usr/bin/env bash
# Installs this project for every Python that is found, with the lowest and the highest versions of its packages, and
# runs the fast tests there.  Prints one line for each.
#
# Usage: bash tests/versions.sh [oldest]
#
# oldest: only the oldest Python, with the lowest versions.  Pythons are python3.9 and later, on PATH and below
# $PYENV_ROOT.  The lowest versions are installed first, as a site may have them: installing this project must not
# change them.
#
# Exit: 0 all passed, or pip reaches no package index; 1 a test or an installation failed; 2 usage.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

main() {
  local -a pythons=() ways=(lowest highest)
  case "$*" in
    '') ;;
    oldest) ways=(lowest) ;;
    *) die 2 'usage: bash tests/versions.sh [oldest]' ;;
  esac
  mapfile -t pythons < <(list_pythons | sort -V | cut -d ' ' -f 2-)
  [[ ${#pythons[@]} -gt 0 ]] || die 1 "no Python $(lowest_python) or later on PATH or below PYENV_ROOT"
  [[ $* != oldest ]] || pythons=("${pythons[0]}")
  BATS=$(command -v bats || echo "$PWD/.venv/bin/bats") # for Pythons that bats has no wheel for
  WORK=$(mktemp -d)
  trap 'rm -rf "$WORK"' EXIT
  if ! "${pythons[0]}" -m pip --disable-pip-version-check download -q --no-deps -d "$WORK" hatchling &>/dev/null; then
    echo 'versions.sh: skipped: pip reaches no package index'
    return
  fi
  local python way failed=0
  for python in "${pythons[@]}"; do
    for way in "${ways[@]}"; do
      rm -rf "$WORK/venv"
      # shellcheck disable=SC2310 # every step of it is asked for its status
      try "$python" "$way" || failed=1
    done
  done
  return "$failed"
}

die() {
  printf 'versions.sh: %s\n' "$2" >&2
  exit "$1"
}

lowest_python() {
  sed -n 's/^requires-python = ">=\(.*\)"/\1/p' pyproject.toml
}

# The lowest versions as words for pip: jsonschema==4.0.1 PyYAML==5.1 ...
lowest() {
  sed -n 's/^dependencies = \[\(.*\)\]/\1/p' pyproject.toml | tr -d '",' | sed 's/>=/==/g'
}

# VERSION PROGRAM of every Python that is new enough; one program for each minor version.
list_pythons() {
  local candidate version oldest
  local -A seen=()
  oldest=$(lowest_python)
  for candidate in python3.{9..19} "${PYENV_ROOT:-/nonexistent}"/versions/3.*/bin/python; do
    version=$("$candidate" -c 'import sys, venv, ensurepip; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    [[ $version == 3.* && ${version#3.} -ge ${oldest#3.} && -z ${seen[$version]-} ]] || continue
    seen[$version]=1
    echo "$version $candidate"
  done
}

# try PYTHON lowest|highest: one environment, and one line about it; the end of the log where something failed.
try() {
  local -r title="Python $("$1" -c 'import platform; print(platform.python_version())'), $2 versions" log=$WORK/log
  local step
  for step in create "install_$2" run_tests; do
    if ! "$step" "$1" &>"$log"; then
      printf '%s: failed to %s: %s\n' "$title" "${step//_/ }" "$(grep -E '[0-9]+ passed, ' "$log" | tail -n 1)"
      tail -n 40 "$log"
      return 1
    fi
  done
  printf '%s (%s): %s\n' "$title" "$(versions | paste -sd ' ')" "$(grep -E '[0-9]+ passed, [0-9]+ failed' "$log" | head -n 1)"
  # What failed beside other tests and passed alone is a defect all the same.
  sed -n '/^=* FAILURES =*$/,/^[0-9]* passed, [0-9]* failed/p' "$log"
}

create() {
  "$1" -m venv "$WORK/venv"
}

install_lowest() {
  local -a words
  read -ra words < <(lowest)
  printf '%s\n' "${words[@]}" | sort -f >"$WORK/lowest"
  # shellcheck disable=SC2310 # their status is all that counts
  { pip install "${words[@]}" && pip install .; } || return
  versions >"$WORK/versions"
  diff "$WORK/lowest" "$WORK/versions" || return # what a site has stays
  pip install --constraint "$WORK/lowest" '.[test]'
}

install_highest() {
  pip install '.[test]'
}

# What the environment has of the packages that the project depends on: jsonschema==4.26.0 ...
versions() {
  pip freeze | grep -iE "^($(lowest | sed 's/==[^ ]*//g; s/ /|/g'))==" | sort -f
}

run_tests() {
  [[ -e $WORK/venv/bin/bats ]] || ln -s "$BATS" "$WORK/venv/bin/bats"
  # The checkout is tested; the package has tests of its own.
  # shellcheck disable=SC2310 # its status is all that counts
  pip uninstall --yes mindspore-launch || return
  run_pytest -n auto
}

run_pytest() {
  PATH=$WORK/venv/bin:$PATH python tests/default_signals.py python -m pytest -q -o "cache_dir=$WORK/cache" -m 'not thorough' \
    --ignore tests/project/make.bats "$@" # make wants 3.10
}

pip() {
  "$WORK/venv/bin/python" -m pip --disable-pip-version-check "$@"
}

main "$@"
