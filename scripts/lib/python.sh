# shellcheck shell=bash
# The Python that runs this project's Python files.

# python::find: in PYTHON the user's $PYTHON, else the Python on PATH; if there is none, the reason in PYTHON_PROBLEM.
python::find() {
  local candidate
  PYTHON_PROBLEM=''
  for candidate in ${PYTHON:+"$PYTHON"} python python3; do
    if command -v -- "$candidate" >/dev/null; then
      PYTHON=$candidate
      return 0
    elif [[ -n ${PYTHON-} ]]; then
      PYTHON_PROBLEM=$"PYTHON=$PYTHON is not a program" # no other Python replaces the one that the user names
      return 0
    fi
  done
  PYTHON_PROBLEM=$"no python on PATH"
}

# python::require: the same, but ends the script if there is none.
python::require() {
  local remedy=$"activate the environment that has MindSpore"
  python::find
  [[ -n $PYTHON_PROBLEM ]] || return 0
  if [[ -n ${PYTHON-} ]]; then
    remedy=$"set it to a Python of 3.9 or later, or unset it"
  elif [[ -x $LAUNCH_ROOT/.venv/bin/python ]]; then
    log::one_line "$LAUNCH_ROOT/.venv/bin/activate"
    remedy+=$"; this project has one: source $REPLY"
  fi
  log::die 78 "$PYTHON_PROBLEM; $remedy"
}

# python::path: the path of that Python, in REPLY, without a new process, which $(type -P) would be.
python::path() {
  REPLY=$PYTHON
  [[ $PYTHON != */* ]] || return 0
  hash -- "$PYTHON"
  REPLY=${BASH_CMDS[$PYTHON]}
}
