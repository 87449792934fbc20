#!/usr/bin/env bash
# Prints the Python that `make` builds its environment with: $PYTHON, else the newest of 3.10 to 3.12 on PATH.
# MindSpore has wheels for these.
set -u

case $OSTYPE in
  linux*) ;;
  *)
    printf 'make: this is %s; Linux is needed: use another machine, a virtual one or a container\n' "${OSTYPE/#darwin*/macOS}" >&2
    exit 1
    ;;
esac

for candidate in ${PYTHON-} python3.12 python3.11 python3.10 python3 python; do
  if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
    command -v "$candidate"
    exit 0
  fi
done
printf 'make: no Python 3.10, 3.11 or 3.12 with its venv module on PATH; install one (Debian: python3-venv), or name it: make PYTHON=/path/to/python3.11\n' >&2
exit 1
