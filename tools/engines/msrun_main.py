"""Runs msrun where MS_ENABLE_TFT may give its ranks to MindCluster's TaskD, and reports when TaskD takes them.

  python msrun_main.py WORDS_OF_MSRUN...

Only this process knows it for sure: the package must be installed, and its agent must be able to begin.  MindSpore
reports it only in a warning, which GLOG_v=3 hides.  The line has the form of an agent's line, see agents.py.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def tell() -> None:
    """Reports it to the launcher, and to the agents that start from now on."""
    os.environ["LAUNCH_HEALS"] = "yes"
    line = f"\n.{os.environ.get('LAUNCH_SECRET', '')} handed\n"
    try:
        pipe = os.open(os.environ.get("LAUNCH_BUS", ""), os.O_WRONLY)
    except OSError as error:
        sys.stderr.write(f"the launcher does not hear that TaskD has the ranks: {error.strerror}\n")
        return
    os.write(pipe, os.fsencode(line))
    os.close(pipe)


def main() -> None:
    """Runs msrun."""
    sys.path[0] = ""  # as with python -c: our own folder has modules with everyday names
    from mindspore.parallel.cluster.process_entity import _api  # type: ignore[import-not-found,unused-ignore]
    from mindspore.parallel.cluster.run import main as msrun  # type: ignore[import-not-found,unused-ignore]

    handle: Any = getattr(_api, "RSCPluginHandle", None)  # older versions have none
    if hasattr(handle, "start"):
        start = handle.start

        def told(self: object) -> object:
            tell()
            return start(self)

        handle.start = told
    msrun()


if __name__ == "__main__":
    main()
