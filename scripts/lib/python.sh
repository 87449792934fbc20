# shellcheck shell=bash
# Which Python starts what this project has in Python.

# python::find: $PYTHON, else that of the active environment, in PYTHON; if there is none, why in PYTHON_PROBLEM.
python::find() {
  local candidate
  PYTHON_PROBLEM=''
  for candidate in ${PYTHON:+"$PYTHON"} python python3; do
    if command -v "$candidate" >/dev/null; then
      PYTHON=$candidate
      return 0
    elif [[ -n ${PYTHON-} ]]; then
      PYTHON_PROBLEM="PYTHON=$PYTHON is not a program" # what the user names is taken, or nothing
      return 0
    fi
  done
  PYTHON_PROBLEM='no python on PATH'
}

# python::require: the same; the script ends if there is none.
python::require() {
  local remedy="activate the environment that has MindSpore"
  python::find
  [[ -n $PYTHON_PROBLEM ]] || return 0
  if [[ -n ${PYTHON-} ]]; then
    remedy='set it to a Python of 3.9 or later, or unset it'
  elif [[ -x $LAUNCH_ROOT/.venv/bin/python ]]; then
    remedy+="; this project has one: source $LAUNCH_ROOT/.venv/bin/activate"
  fi
  log::die 78 "$PYTHON_PROBLEM; $remedy"
}
