"""Selects the Open MPI for the tests: version OPEN_MPI, 4 or 5; without OPEN_MPI the first mpirun on PATH.

An mpirun of that version on PATH comes first, then the wheel in the environment: `make` puts 5 into .venv/bin
and 4 into .venv/open-mpi-4.  `python tests/suite/open_mpi.py` prints the mpirun that is used.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile


class NoSuchVersion(Exception):
    """The requested version of mpirun was not found."""


def use() -> str:
    """Puts the mpirun of the tests first on PATH; returns a sentence about it.  Raises NoSuchVersion.

    PATH gets only a link to it, because its folder has other programs, such as another Python.
    """
    path = _find(os.environ.get("OPEN_MPI", ""))
    if path is None:
        return "no mpirun"
    if path != shutil.which("mpirun"):
        folder = tempfile.mkdtemp(prefix="open-mpi.")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.symlink(path, os.path.join(folder, "mpirun"))
        os.environ["PATH"] = folder + os.pathsep + os.environ.get("PATH", os.defpath)
    return f"Open MPI {_version(path)}, {os.path.realpath(path)}"


def left_behind() -> set[str]:
    """The folders of killed mpiruns of Open MPI 5.  They stop a new mpirun with the same process id from starting."""
    with os.scandir(tempfile.gettempdir()) as entries:
        found = {entry.path: re.fullmatch(r"ompi\.([0-9]+)", entry.name) for entry in entries}
    return {path for path, match in found.items() if match and not os.path.exists(f"/proc/{match[1]}")}


def _find(wanted: str) -> str | None:
    """The mpirun of version `wanted`; the first one if that is empty."""
    folders = [*os.environ.get("PATH", os.defpath).split(os.pathsep), os.path.join(sys.prefix, "bin")]
    folders.append(os.path.join(sys.prefix, f"open-mpi-{wanted}", "bin"))
    for folder in folders:
        path = shutil.which("mpirun", path=folder)
        if path and (not wanted or _version(path).partition(".")[0] == wanted):
            return path
    if wanted:
        words = f"OPEN_MPI={wanted}: no mpirun of Open MPI {wanted}; 4 or 5 can be asked for"
        raise NoSuchVersion(f"{words}; type: make test OPEN_MPI={wanted}")
    return None


def _version(path: str) -> str:
    said = subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    found = re.search(r"\(Open MPI\) (\S+)", said.stdout)
    return found.group(1) if found else "of another kind"


if __name__ == "__main__":
    try:
        print(use())
    except NoSuchVersion as error:
        sys.exit(str(error))
