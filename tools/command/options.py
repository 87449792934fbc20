"""Takes options and their values from a command line: first ours, then those of other launchers."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_tools.common.numbers import seconds
from hccl_tools.common.quoting import quote
from hccl_tools.common.refusal import Refusal
from hccl_tools.common.words import with_home
from tools.command import program, table
from tools.command.line import Line

_FLAG = {"True": "1", "true": "1", "False": "", "false": ""}
_BEFORE_NUMBER = ("-n", "-np", "-N", "-ppn")  # people type -n4
PATHS = ("FILE", "DIR", "[RUN]")  # values that are paths
_MOST_SECONDS = 10**8 - 1


def take_option(line: Line, words: Sequence[str]) -> int:
    """Takes the option at the front and its value; the number of words."""
    name = table.bare(words[0])
    if name in line.table:
        value, taken = value_of(line, line.table[name].takes, words)
        line.options.append((name, value))
        return taken
    taken = _take_other(line, words)
    if not taken:
        program.check_first(line, True)
        instead = program.instead_of(line, name) if line.launches else ""
        option = words[0].partition("=")[0]
        raise _unknown(line, option, instead or _meant(line, option))
    return taken


def take_letter(line: Line, words: Sequence[str]) -> int:
    """The same for a word with one dash: an option of one letter, such as -n 4, or one of another launcher."""
    word = words[0]
    option = word.rstrip("0123456789")
    if option in _BEFORE_NUMBER and option != word:
        return take_letter(line, [option, word[len(option) :], *words[1:]]) - 1
    if len(word) == 2 and word[1] in line.table:
        return take_option(line, [f"-{word}", *words[1:]])
    taken = _take_other(line, words)
    if not taken:
        program.check_first(line, True)
        raise _unknown(line, word, _meant(line, word) or line.hint())
    return taken


def _take_other(line: Line, words: Sequence[str]) -> int:
    """Takes an option of another launcher; 0 if it is none."""
    return next(filter(None, (take(line, words) for take in line.others)), 0)


def _meant(line: Line, option: str) -> str:
    from tools.command import meant  # for a mistake

    return meant.instead(line, option) if line.launches else ""


def _unknown(line: Line, option: str, instead: str) -> Refusal:
    return line.misused("unknown option {option}{instead}", option=option, instead=instead)


def value_of(line: Line, takes: str, words: Sequence[str]) -> tuple[str, int]:
    """The value of the option at the front, and the number of words.  takes: as in table.Option."""
    typed = table.typed(table.bare(words[0]))
    _, equals, value = words[0].partition("=")
    taken = 1
    if takes == "-":
        if equals and value not in _FLAG:
            raise line.misused("{option} takes no value", option=typed)
        return _FLAG[value] if equals else "1", taken
    if takes.startswith("[True"):
        return _flag(line, takes, words)
    if not equals:
        value, taken = _next_word(line, takes, words)
    if not value:
        raise line.misused("{option} needs a value: {option} {takes}", option=typed, takes=takes)
    return _meaning(line, takes, typed, value), taken


def _meaning(line: Line, takes: str, typed: str, value: str) -> str:
    """The value as all others read it: a time in seconds, a path without ~."""
    if takes == "SECONDS":
        number = seconds(value, 0, _MOST_SECONDS)
        if number is None:
            raise line.misused(
                "{option} {value} is not a time: write whole seconds of at most 8 digits, or 90s, 10m, 2h, 1h30m, 1d",
                option=typed,
                value=quote(value),
            )
        return str(number)
    if takes == "NAMES":
        return ",".join(map(with_home, value.split(",")))
    return with_home(value) if takes in PATHS else value


def _next_word(line: Line, takes: str, words: Sequence[str]) -> tuple[str, int]:
    """The value after the option, if the next word is one, and the number of words."""
    word = words[1] if len(words) > 1 else "--"
    if takes == "[RUN]":
        is_run = len(words) > 1 and program.is_run(line, word)
        return (word, 2) if is_run else ("newest", 1)
    if takes == "[MODULES]":  # the next word may be the program
        return "auto", 1
    return (word, 2) if not word.startswith("--") or (takes == "WORDS" and word != "--") else ("", 1)


def _flag(line: Line, takes: str, words: Sequence[str]) -> tuple[str, int]:
    """1, or nothing, of a flag that True or False may follow, and the number of words; or its map or file."""
    option, equals, word = words[0].partition("=")
    taken = 1
    if not equals:
        word = "True"
        if len(words) > 1 and (words[1] in _FLAG or _is_map(line, takes, words[1])):
            word, taken = words[1], 2
    if word not in _FLAG and (equals or taken == 2) and _may_be_map(takes, word):
        return with_home(word), taken
    if word not in _FLAG:
        raise line.misused(
            "{option}={word}: write {option}, {option}=True or {option}=False", option=option, word=quote(word)
        )
    return _FLAG[word], taken


def _may_be_map(takes: str, word: str) -> bool:
    """Whether the word behind = is a map, or a file with one."""
    return "MAP" in takes and (word.startswith("{") or ("FILE" in takes and word.endswith(".json")))


def _is_map(line: Line, takes: str, word: str) -> bool:
    """The same of the next word, which may be an argument instead: a rank table is a JSON file, too."""
    return _may_be_map(takes, word) and (word.startswith("{") or "RANK_TABLE_FILE" not in line.declaration.arguments)
