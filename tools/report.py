#!/usr/bin/env python3
"""Writes a page about a run, one HTML file: outcome and cause, a time line, curves of all ranks, ends of logs.

  python tools/report.py                     logs/latest/report.html, of the newest run
  python tools/report.py logs/RUN            of this run
  python tools/report.py logs/A logs/B --output both.html     of several runs, side by side

The page needs no network, and can be read on a phone.  configs/progress.yaml, and the file that LAUNCH_PROGRESS names,
define which log lines have numbers.  Large logs are read in parts, and many steps are sampled; the page then states
that.  Secrets are masked, as by --bundle of diagnose.py.  Only its owner may read the page.
Exit: 0 written, its path is on stdout, 2 usage, no such run, or the page cannot be written.
"""

import argparse
import gc
import os
import sys

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

try:
    from hccl_tools.machine import interpreter
except ImportError:  # copied without the rest of the project
    sys.stderr.write("the rest of the project is not here; run it there: python PROJECT/tools/report.py\n")
    sys.exit(2)

interpreter.check("yaml")

from hccl_tools.commands import boundary
from hccl_tools.common import documents
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from tools.run_page import document

NEWEST = os.path.join("logs", "latest")


def main(argv: "list[str] | None" = None) -> int:
    options = parse(argv)
    return boundary.run("report.py", lambda: run(options))


def run(options: argparse.Namespace) -> int:
    runs = options.runs or [NEWEST]
    gc.disable()  # millions of numbers, none of which is in a circle
    try:
        path = document.write(runs, options.output)
    finally:
        gc.enable()
    print(documents.json_text({"file": os.path.abspath(path), "runs": runs}) if options.json else one_line(path))
    return 0


def parse(argv: "list[str] | None") -> argparse.Namespace:
    parser = Parser(description=tr(__doc__))
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help=tr("the folder of a run; several are compared (default: logs/latest)")
    )
    parser.option(
        "output", tr(" (default: report.html in the run's folder; of several compared.html in the first one's)")
    )
    parser.json(note=tr(": the page's path"))
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
