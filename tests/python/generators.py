"""Tests that start the commands which generate data skip where these cannot even say --help."""

import pytest


def need_packages():
    """What tools/prepare_*.py import."""
    for module, name in (("numpy", "NumPy"), ("PIL", "Pillow"), ("sklearn", "scikit-learn")):
        pytest.importorskip(module, reason=f"needs {name}")


def need_packages_of(command):
    """The same for a command that may be another one."""
    if command.startswith("tools/prepare_"):
        need_packages()
