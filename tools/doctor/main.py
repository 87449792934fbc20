"""Makes the page of scripts/doctor.sh, which calls this and has the help; nothing else calls it.

Starts every program at the same time, and waits for each no longer than its limit.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from hccl_tools.build import output
from hccl_tools.common import language
from hccl_tools.common.command_line import Parser
from hccl_tools.common.language import tr
from hccl_tools.common.words import one_line
from hccl_tools.machine import hccn, programs
from tools.doctor import gpus, installed, limits, network, npu_smi, npus, page, system, versions
from tools.doctor.section import Facts, Options, Section

SECONDS = 30  # limit of one program; the import of MindSpore takes 3 s, and more from a slow disk
SECTIONS: tuple[Section, ...] = (system, versions, npus, gpus, limits, network, installed)


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the page; 0 without problems, 1 with some, 2 when it cannot be printed."""
    options = parse_arguments(argv)
    if options.format == "json":
        language.use("en")  # programs read it
    if sys.stdout is None:
        print(tr("doctor.sh: stdout is closed, and the page goes there"), file=sys.stderr)
        return 2
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        sections = examine(options)
        if options.format == "json":
            text = page.as_json(sections, made)
        else:
            text = page.as_text(sections, made, page.wants_colour())
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")
        print(text, end="", flush=True)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print(tr("doctor.sh: cannot write to stdout: {reason}", reason=error.strerror), file=sys.stderr)
        output.drop_stdout()
        return 2
    return int(any(line.status == page.PROBLEM for section in sections.values() for line in section))


def parse_arguments(argv: Sequence[str] | None) -> Options:
    """What doctor.sh passes on."""
    parser = Parser("doctor.sh")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    parser.add_argument("--log_dir", default="logs")
    parser.add_argument("--hccn_conf", default=hccn.DEFAULT_CONF)
    parser.add_argument("--shell", default="")
    return parser.parse_args(argv, namespace=Options())


def examine(options: Options) -> dict[str, list[page.Line]]:
    """The lines of every section, by its title."""
    questions = {key: command for section in SECTIONS for key, command in section.questions(options).items()}
    with ThreadPoolExecutor(max_workers=1) as pool:
        looking = pool.submit(npu_smi.look, options.hccn_conf)
        answers = programs.ask_all(questions, SECONDS)
        try:
            found = looking.result()
        except Exception as error:  # as in `lines_of`
            why = tr("asking for NPUs failed, please report: {error}", error=f"{type(error).__name__}: {error}")
            found = npu_smi.Npus(smi=npu_smi.NpuSmi(failure=why))
    facts = Facts(options, answers, found)
    return {section.TITLE: lines_of(section, facts) for section in SECTIONS}


def lines_of(section: Section, facts: Facts) -> list[page.Line]:
    """The lines of a section.  A mistake in one must not cost the rest of the page: that is when users need it."""
    try:
        return list(section.lines(facts))
    except Exception as error:
        text = one_line(tr("this section failed: {error}", error=f"{type(error).__name__}: {error}"))
        remedy = tr("a bug of the doctor; please report it with this page")
        return [page.Line(section.TITLE.lower(), page.UNKNOWN, text, remedy)]


if __name__ == "__main__":
    sys.exit(main())
