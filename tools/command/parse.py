"""The parser of a command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.words import with_home
from tools.command import help as help_page
from tools.command import options, program
from tools.command.line import Line


def parse(line: Line, words: Sequence[str]) -> None:
    """Reads the words into the line.  Raises Refusal, and HelpAsked for --help."""
    for _ in steps(line, words):
        pass
    if line.launches and line.environ.get("MSLAUNCH_OPTIONS"):
        from tools.command import defaults

        defaults.add(line)
    if line.per_device[0]:
        from tools.command import per_device

        per_device.finish(line)
    if line.hosts or line.per_host:
        from tools.command import synonyms

        synonyms.finish(line)
    if line.given("help"):
        raise help_page.HelpAsked(help_page.page(line))
    if line.given("version"):
        raise help_page.HelpAsked(help_page.version())
    if line.given("lang"):
        line.choice("lang", "en")
    _check_count(line)


def steps(line: Line, words: Sequence[str]) -> Iterator[int]:
    """Reads the words into the line, and yields how many each step took; the rest is another program's."""
    if line.declaration.others == "mpirun_words":
        from tools.command import mpirun_words

        line.others.append(mpirun_words.take)
    if line.launches:
        line.others.append(_take_synonym)
    at = 0
    while at < len(words):
        taken = _take(line, words[at:])
        if not taken:
            break
        yield taken
        at += taken


def _take(line: Line, words: Sequence[str]) -> int:
    """Takes the word at the front, with its value; the number of words, 0 if the rest is another program's."""
    word = words[0]
    if word == "--":
        _take_rest(line, words[1:])
        return 0
    if word == "-h":
        line.options.append(("help", "1"))
        return 1
    if word.startswith("--"):
        return options.take_option(line, words)
    is_number = word.startswith("-") and word[1:2].isdigit()  # a negative one; the plan checks it
    if not is_number and _begins_program(line, words):
        return 0
    if not is_number and word.startswith("-") and word != "-":
        return options.take_letter(line, words)
    line.arguments.append(with_home(word))
    return 1


def _take_synonym(line: Line, words: Sequence[str]) -> int:
    from tools.command import synonyms  # few command lines have one

    return synonyms.take(line, words)


def _take_rest(line: Line, words: Sequence[str]) -> None:
    """Takes the words after --."""
    if not line.launches:
        raise line.misused("unknown option --")
    if line.declaration.quoted:  # the words of the one that is one quoted argument
        line.arguments += words
    elif not program.takes_after_dashes(line, words):
        line.trainer = list(words)


def _begins_program(line: Line, words: Sequence[str]) -> bool:
    return line.launches and not line.declaration.quoted and program.takes(line, words)


def _check_count(line: Line) -> None:
    """Refuses a missing or an extra argument, by name."""
    if line.declaration.quoted:
        from tools.command import quoted

        line.names = quoted.arguments(line)
    elif line.launches:
        line.names = program.arguments(line)
    if line.launches:
        program.check_first(line)
    given = len(line.arguments)
    if given > 1:
        _check_order(line)
    if given < len(line.names):
        name = tr("PROGRAM or CONFIG") if line.names == ("CONFIG",) else line.names[given]
        instead = program.as_value(line) if line.launches else ""
        raise line.misused("{name} is missing{instead}", name=name, instead=instead)
    if given > len(line.names):
        extra = quote(line.arguments[len(line.names)])
        raise line.misused("one argument too many: {argument}{hint}", argument=extra, hint=line.hint())


def _check_order(line: Line) -> None:
    """Refuses words that are all there, in another order."""
    from tools.command import meant  # few command lines have two arguments

    if fault := meant.order(line) or meant.number(line):
        raise line.mistake(fault)
