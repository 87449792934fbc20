"""The engines by name; each is one file in this package."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.engines.base import Engine
    from tools.launch.run import Run

# name -> class, in the file of that name
ENGINES = {"local": "Local", "mpirun": "Mpirun", "srun": "Srun", "msrun": "Msrun"}


def make(name: str, run: Run) -> Engine:
    """The engine of this name; only its own module is imported."""
    engine: Engine = getattr(import_module(f"tools.engines.{name}"), ENGINES[name])(run)
    return engine
