"""Parses options of mpirun as people type them: with one dash or two, for Open MPI 4 or 5.

mpirun_table.py defines the meaning of each.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from hccl_tools.common import words
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import quote
from hccl_tools.common.record import Record
from tools.command.line import Line
from tools.command.mpirun_table import OPTIONS, PARAMETERS, Meaning
from tools.command.options import take_option


class _Typed(Record):
    """An option of mpirun as it was typed."""

    line: Line
    typed: str  # for messages: -mca, or -mca pml
    name: str  # mca
    values: list[str]  # after the option

    def shown(self) -> str:
        """The option with its value."""
        return f"{self.typed} {quote(self.values[-1])}"


def take(line: Line, words: Sequence[str]) -> int:
    """Takes one option and its values from the front; returns the number of words, 0 if the first is another word."""
    typed, equals, value = words[0].partition("=")
    name = typed[2 if typed.startswith("--") else 1 :].replace("-", "_")
    meaning = OPTIONS.get(name)
    if meaning is None:
        return 0
    if equals and meaning.values == 1:
        values, taken = [value], 1
    elif equals:
        raise line.misused("{typed}: write its values after it, without =", typed=typed)
    else:
        values = list(words[1 : meaning.values + 1])
        taken = len(values) + 1
    option = _Typed(line=line, typed=typed, name=name, values=values)
    _check_values(option, meaning.values)
    _apply(option, meaning)
    return taken


def check(line: Line) -> None:
    """Refuses what contradicts the other words, when all of them are read."""
    if line.mpirun.given.get("bind_to", "none") != "none":
        for name in ("bind_core", "bind_numa"):
            if line.given(name):
                raise line.misused("--{option} and --bind-to contradict each other; give only one of them", option=name)
    has_hosts = line.names[:1] in (("HOSTS",), ("HOSTFILE",)) or line.given("hosts") or line.given("hostfile")
    if has_hosts and line.one_host:
        raise line.misused(
            "{typed}: the launch fills one host after the other, in the order of the devices; write how many "
            "ranks a host gets: HOST:8, or slots=8",
            typed=line.one_host[0],
        )


def _check_values(option: _Typed, number: int) -> None:
    """Refuses missing values, and what mpirun would take for an option."""
    line, typed = option.line, option.typed
    if len(option.values) != number:
        if number == 1:
            raise line.misused("{typed} needs 1 value", typed=typed)
        raise line.misused("{typed} needs {number} values", typed=typed, number=number)
    for value in option.values:
        is_option = value.startswith("-") and not value[1:2].isdigit() and " " not in value
        if not value or is_option:
            raise line.misused("{typed}: {value} is not a value", typed=typed, value=quote(value))
        if option.name not in ("x", "H", "host") and any(
            c < " " or "\x7f" <= c <= "\x9f" or c in "\u2028\u2029" for c in value
        ):
            raise line.misused("{typed}: {value} has a control character", typed=typed, value=quote(value))


def _apply(option: _Typed, meaning: Meaning) -> None:
    """Does what the table states."""
    line, text, values = option.line, meaning.text, option.values
    if meaning.kind == "same":
        take_option(line, [f"--{text}={values[-1]}" if values else f"--{text}"])
    elif meaning.kind == "alias":
        _apply(option.replace(name=text), OPTIONS[text])
    elif meaning.kind == "needless":
        line.note_needless(option.typed, tr(text))
    elif meaning.kind == "passed":
        _pass(line, option.name, values)
    elif meaning.kind == "depends":
        _WAYS[text](option)
    elif meaning.kind == "refused":
        raise line.mistake(f"{option.typed}: {tr(text)}")


def _pass(line: Line, name: str, values: list[str]) -> None:
    """Passes an option to mpirun, in the spelling that 4 and 5 have in common."""
    dashes = "--" if len(name) > 1 else "-"
    line.mpirun.passed.extend([dashes + name.replace("_", "-"), *values])


def _pass_once(option: _Typed, key: str) -> None:
    """Passes what mpirun takes only once."""
    if key in option.line.mpirun.given:
        raise option.line.misused("{typed} is given twice; give it once", typed=option.typed)
    option.line.mpirun.given[key] = option.values[-1]
    _pass(option.line, option.name, option.values)


def _hosts(option: _Typed) -> None:
    line = option.line
    is_file, before = option.name.endswith("file"), line.value("hosts")
    if line.given("hostfile") or (before and is_file):
        raise line.misused("{typed}: the hosts are named twice; name them once", typed=option.shown())
    named = words.with_home(option.values[0]) if is_file else option.values[0]
    hosts = f"{before},{named}" if before else named  # mpirun adds them up
    line.options.append(("hostfile" if is_file else "hosts", hosts))


def _once(option: _Typed) -> None:
    _pass_once(option, option.name)


def _order(option: _Typed) -> None:
    way, _, rest = option.values[0].partition(":")
    if way == "ppr" and option.name == "map_by":
        number, _, rest = rest.partition(":")
        what, _, others = rest.partition(":")
        if what == "node":
            take_option(option.line, [f"--npernode={number}"])
            if others:
                _pass_once(option.replace(values=[f"slot:{others}"]), option.name)
            return
    if way != "slot":
        option.line.one_host.append(option.shown())
    _pass_once(option, option.name)


def _folder(option: _Typed) -> None:
    folder = words.with_home(option.values[0])
    try:
        here = os.path.samefile(folder, ".")
    except OSError:
        here = False
    if not here:
        raise option.line.misused(
            "{typed}: ranks run in the folder where you type the command; type cd {folder} before it",
            typed=option.shown(),
            folder=quote(folder),
        )


def _stdin(option: _Typed) -> None:
    if option.values[0] != "none":
        raise option.line.misused("{typed}: ranks have no standard input", typed=option.shown())


def _failure(option: _Typed) -> None:
    value = option.values[0]
    if value in ("0", "false", "no"):
        option.line.options.append(("keep_going", "1"))
    elif value not in ("1", "true", "yes"):
        raise option.line.misused("{typed}: write 1, or 0 for --keep_going", typed=option.shown())


def _parameter(option: _Typed) -> None:
    """-mca and its like."""
    parameter, value = option.values
    typed = f"{option.typed} {parameter}"
    if not (parameter.isascii() and parameter.replace("_", "a").isalnum()):
        raise option.line.misused(
            "{typed}: {parameter} is not the name of a parameter", typed=typed, parameter=parameter
        )
    meaning = PARAMETERS.get(parameter)
    if meaning:
        _apply(option.replace(typed=typed, values=[value]), meaning)
    else:
        _pass_once(option.replace(typed=typed), parameter)


def _variable(option: _Typed) -> None:
    """-x NAME or NAME=VALUE.

    All that the user's shell exports reaches the ranks without it, but for what belongs to a host or a login.  A value
    is for the ranks alone, whatever our programs would make of it.
    """
    from tools.rank.environment import CONTRACT

    line, words = option.line, option.line.mpirun
    name, equals, value = option.values[0].partition("=")
    if not (name.isascii() and name.isidentifier()):
        raise line.misused("-x {name}: write -x NAME or -x NAME=VALUE", name=quote(name))
    if not equals:
        if name not in words.export and name not in words.values and name not in line.environ:
            line.note(tr("note: -x {name}: your shell exports no such variable", name=name))
        words.export.add(name)
        return
    if name.startswith("LAUNCH_") or name in CONTRACT:
        raise line.misused("-x {name}=...: the launch itself sets {name}", name=name)
    words.values[name] = value
    if name in ("DATA_PATH", "PYTHONPATH"):  # the plan looks there, too
        line.environment[name] = value


_WAYS: dict[str, Callable[[_Typed], None]] = {
    "hosts": _hosts,
    "variable": _variable,
    "parameter": _parameter,
    "once": _once,
    "order": _order,
    "folder": _folder,
    "stdin": _stdin,
    "failure": _failure,
}
