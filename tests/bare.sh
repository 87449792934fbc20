#!/usr/bin/env bash
# The bare profile: runs a command as on a machine that has no engine and no test hosts, whatever is installed here.
#
# Usage: bash tests/bare.sh COMMAND [ARGUMENT...]
#   such as: bash tests/bare.sh python -m pytest tests/hccl_tools/test_ask.py
#
# Its PATH is one folder of links to all programs of PATH but Open MPI's, Slurm's, sshd, ip and munge's. The folder is a
# virtual environment, too, with the packages of the project's .venv, or of the environment that is active. A Python
# that is not that environment's stays where it is: what is made with it outlives the folder of links.
# Exit: as COMMAND; 2 without one.
set -euo pipefail
shopt -s extglob nullglob
here=$(readlink -f -- "${BASH_SOURCE[0]}")
readonly PROJECT=${here%/tests/*}
readonly OPEN_MPI_S='mpi@(run|exec)*|orte*|prte*|prun|pterm'
readonly SLURM_S='slurm*|s@(acct*|alloc|attach|batch|bcast|cancel|control|crontab|diag|info|prio|queue|report|run|share|stat|trigger|view)'
readonly ABSENT="@($OPEN_MPI_S|$SLURM_S|sshd|ip|munge*)"

# bare::programs BIN: links to the programs of PATH; of several with one name the first.
bare::programs() {
  local folder
  local -a folders found
  IFS=: read -r -a folders <<<"$PATH"
  for folder in "${folders[@]}"; do
    found=("${folder:-.}"/!($ABSENT))
    ((${#found[@]} == 0)) || ln -s -t "$1" -- "${found[@]}" 2>/dev/null || : # the others are linked all the same
  done
}

# bare::pythons BIN: a Python of no environment by its own path. By a link it would take its folder for BIN, which make's
# .venv then names, and for a part of the environment that BIN belongs to. A version manager's is asked which it is: from
# BIN it would find itself again, without end. One that does not answer stays as it is.
bare::pythons() {
  local link python
  for link in "$1"/python?(3?(.+([0-9]))); do
    python=$(readlink -- "$link")
    [[ ! -e ${python%/*}/../pyvenv.cfg ]] || continue
    python=$("$python" -I -c 'import sys; print(sys.executable)' 2>/dev/null) && [[ -x $python ]] || continue
    rm -f -- "$link"
    printf '#!/usr/bin/env bash\nexec %q "$@"\n' "$python" >"$link"
    chmod 755 "$link"
  done
}

# bare::environment PREFIX BARE: BARE is the environment PREFIX, but for bin. A Python looks for pyvenv.cfg beside the
# folder in which it was found, before it follows the link.
bare::environment() {
  local entry
  [[ -e $1/pyvenv.cfg ]] || return 0
  for entry in "$1"/*; do
    [[ $entry == */bin ]] || ln -s "$entry" "$2/"
  done
  rm -f -- "$2/bin/activate" # the link: it would lead to the programs of PREFIX
  # shellcheck disable=SC2016 # PATH is the reader's
  printf 'export VIRTUAL_ENV=%q PATH=%q:"$PATH"\n' "$2" "$2/bin" >"$2/bin/activate"
}

if (($# == 0)); then
  sed -n 's/^# \(Usage: .*\)/\1/p' "$here" >&2
  exit 2
fi
[[ -n ${VIRTUAL_ENV-} ]] || PATH=$PROJECT/.venv/bin:$PATH
bare=$(mktemp -d "${TMPDIR:-/tmp}/bare.XXXXXX")
trap 'rm -rf -- "$bare"' EXIT
chmod 755 "$bare" # tests become other users
mkdir "$bare/bin"
bare::programs "$bare/bin"
bare::pythons "$bare/bin"
bare::environment "$(! type -P python >/dev/null || python -c 'import sys; print(sys.prefix)')" "$bare"
unset OPEN_MPI LAB_REQUIRED # they demand what is not there
PATH=$bare/bin VIRTUAL_ENV=$bare "$@"
