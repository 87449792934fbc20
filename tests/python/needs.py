"""What a test needs of the machine. Without it the test is skipped; the end of `make test` says how to get it."""

import os
import shutil

import pytest


def _why_not(programs):
    return next((f"needs {program}" for program in programs if not shutil.which(program)), "")


def need(*programs):
    """Skips the test where one of these programs is not on PATH."""
    if _why_not(programs):
        pytest.skip(_why_not(programs))


def needs(*programs):
    """The same as a mark: @needs("mpirun")."""
    return pytest.mark.skipif(bool(_why_not(programs)), reason=_why_not(programs))


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to become another user")
