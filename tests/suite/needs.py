"""What a test needs of the machine. Without it the test is skipped; the end of `make test` says how to get it."""

import importlib
import importlib.util
import os
import shutil

import pytest

_PACKAGES = {
    **{"axe_core_python": "axe-core-python", "mindspore": "MindSpore", "numpy": "NumPy"},
    **{"pyte": "pyte", "sklearn": "scikit-learn"},
}


def _why_not(programs):
    return next((f"needs {program}" for program in programs if not shutil.which(program)), "")


def need(*programs):
    """Skips the test where one of these programs is not on PATH."""
    if _why_not(programs):
        pytest.skip(_why_not(programs))


def needs(*programs):
    """The same as a mark: @needs("mpirun")."""
    return pytest.mark.skipif(bool(_why_not(programs)), reason=_why_not(programs))


def needs_packages(*names):
    """The mark for packages; it asks whether they are there, and does not import them."""
    missing = next((f"needs {_PACKAGES.get(name, name)}" for name in names if not importlib.util.find_spec(name)), "")
    return pytest.mark.skipif(bool(missing), reason=missing)


class Later:
    """A module that the first use of it imports: else every worker would import MindSpore (2.5 s) to list its tests."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        if attribute.startswith(("_", "pytest")):  # pytest asks every object of a file whether it is a test
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: to become another user")


def need_packages():
    """What tools/prepare_*.py import."""
    for module, name in (("numpy", "NumPy"), ("PIL", "Pillow"), ("sklearn", "scikit-learn")):
        pytest.importorskip(module, reason=f"needs {name}")


def need_packages_of(command):
    """The same for a command that may be another one."""
    if command.startswith("tools/prepare_"):
        need_packages()
