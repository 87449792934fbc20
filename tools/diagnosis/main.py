"""Says why a launch failed and what to do, from the logs of its ranks and the table of known failures.

The launcher's report runs it after a failure; by hand it explains any earlier run:

  python tools/diagnose.py logs/latest

Known failures are in the file that LAUNCH_DIAGNOSES names, then in configs/diagnoses.yaml.
The explanation goes to stdout, and as outcome.diagnosis into the run's launch.json.

Exit: 0 explained, 2 usage, or RUN_FOLDER holds no run that has ended.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import one_line
from tools.diagnosis import find, known_failures, run, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tools.diagnosis.known_failures import KnownFailure

    Known = tuple[list[KnownFailure], list[str]]


def main(argv: Sequence[str] | None = None) -> int:
    options = _options(argv)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not know Chinese
    return explain_run(options.run_folder, known_failures.load(), options.oom_kills)


def explain_run(folder: str, known: Known, oom_kills: int) -> int:
    """Says why the run of the folder failed, and adds that to its launch.json; returns the exit code."""
    try:
        launch = run.read_launch(folder)
    except Refusal as error:
        return _tell(error.lines, error.status)
    if explain(launch, folder, known, oom_kills):
        find.save(launch, folder)
    return 0


def explain(launch: dict[str, Any], folder: str, known: Known, oom_kills: int) -> bool:
    """Says why the run of the folder failed, and adds that to `launch`; returns whether a rank has failed."""
    entries, complaints = known
    _tell([tr("{line}; left out", line=line) for line in complaints])
    members = run.read_members(launch, folder)
    if not members:
        print(tr("no rank failed: nothing to explain"))
        return False
    target = launch.get("device_target")
    matches = find.causes(entries, members, oom_kills, target if target in known_failures.TARGETS else None)
    try:
        print("\n".join(map(one_line, words.explain(members, matches))), flush=True)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the reader left; Python flushes once more at its end
    launch["outcome"]["diagnosis"] = find.as_data(members, matches)
    return True


def _tell(lines: Sequence[str], status: int = 0) -> int:
    for line in lines:
        print(f"diagnose.py: {one_line(line)}", file=sys.stderr)
    return status


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = Parser(description=tr(__doc__))
    parser.add_argument("run_folder", metavar="RUN_FOLDER", help=tr("the run's folder, with launch.json and the logs"))
    parser.add_argument(
        "--oom_kills",
        "--oom-kills",
        metavar="N",
        type=int,
        default=0,
        help=tr(
            "processes that the kernel killed for memory on this machine while the job ran (oom_kill in /proc/vmstat)"
        ),
    )
    return parser.parse_args(argv)
