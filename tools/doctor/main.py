"""Makes the page of scripts/doctor.sh, its only caller: ``main.py script=$0 shell=VERSION -- WORD...``.

It starts every program at the same time, and waits for each no longer than its limit.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

if not __package__:  # run as a file: import the packages hccl_tools and tools from the project
    sys.path[0] = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

from hccl_tools.build import output
from hccl_tools.common import colours, how_far, language, utc
from hccl_tools.common.language import marked, strerror, tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.typed import name_of
from hccl_tools.common.words import one_line
from hccl_tools.machine import hccn, interpreter, programs
from tools.command import language as typed_language
from tools.command import table
from tools.command.declaration import Declaration
from tools.command.help import HelpAsked
from tools.command.line import Line
from tools.command.options import value_of
from tools.command.parse import parse
from tools.doctor import gpus, installed, limits, network, npu_smi, npus, page, system, versions
from tools.doctor.page import Facts, Options, Section
from tools.output.voice import Voice

SECONDS = 30  # limit of one program; the import of MindSpore takes 3 s, and more from a slow disk
SECTIONS: tuple[Section, ...] = (system, versions, npus, gpus, limits, network, installed)
_FORMS = ("text", "json")
_EXIT = marked("0 no problem, 1 problems, 2 usage.")


def main(words: Sequence[str]) -> int:
    """Prints the page; 0 without problems, 1 with some, 2 when it cannot be printed or the command line is wrong."""
    split = words.index("--")
    told = dict(word.split("=", 1) for word in words[:split])
    typed = words[split + 1 :]
    name = typed_language.exported(typed, os.environ)
    if name:
        language.use(name)
    if sys.stdout is None:
        print(f"{name_of('doctor.sh')}: {tr('stdout is closed, and the page goes there')}", file=sys.stderr)
        return USAGE
    try:
        options = read(told["script"], told["shell"], typed)
        if options.json:
            language.use("en")  # programs read it
        made = utc.text()
        with how_far.showing(), how_far.doing(tr("examining this machine")):
            sections = examine(options)
        if options.json:
            text = page.as_json(sections, made)
        else:
            text = page.as_text(sections, made, colours.wanted(sys.stdout))
        problem = any(line.status == page.PROBLEM for section in sections.values() for line in section)
        return show(text) or int(problem)
    except HelpAsked as asked:
        return show(asked.text)
    except Refusal as refusal:
        for line in refusal.lines:
            Voice(name_of(os.path.basename(told["script"]))).refuse(line)
        return refusal.status
    except KeyboardInterrupt:
        return 130


def read(script: str, shell: str, typed: Sequence[str]) -> Options:
    """What the user typed.  Raises Refusal, and HelpAsked for --help.

    script: its path, $0; shell: the version of the bash that ran it.
    """
    declaration = Declaration(
        script=script,
        name=os.path.basename(script),
        engine="",
        options=("json", "log_dir", "hccn_conf", "lang", "version", "help"),
        exit_codes=_EXIT,
        extra={},
    )
    line = Line(declaration, os.environ)
    line.others.append(_take_format)
    parse(line, typed)
    return Options(
        json=line.given("json"),
        log_dir=line.value("log_dir", "logs"),
        hccn_conf=line.value("hccn_conf", hccn.DEFAULT_CONF),
        shell=shell,
    )


def _take_format(line: Line, words: Sequence[str]) -> int:
    """Takes --format text or --format json, which earlier versions had, from the front; the number of words."""
    if table.bare(words[0]) != "format":
        return 0
    value, taken = value_of(line, "|".join(_FORMS), words)
    line.options.append(("json", "1" if line.one_of("format", value, _FORMS) == "json" else ""))
    return taken


def show(text: str) -> int:
    """Prints the text; 0, or 2 if it cannot be printed."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        print(text, end="", flush=True)
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            text = tr("cannot write to stdout: {reason}", reason=strerror(error))
            print(f"{name_of('doctor.sh')}: {text}", file=sys.stderr)
        output.drop_stdout()
        return USAGE
    return 0


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
    interpreter.of_user()
    sys.exit(main(sys.argv[1:]))
