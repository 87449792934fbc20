"""Ends every command: converts exceptions into lines on stderr and an exit code."""

from __future__ import annotations

import contextlib
import io
import signal
import sys
from collections.abc import Callable

from hccl_tools.common import colours, how_far
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.typed import name_of
from hccl_tools.common.words import folder_fault, one_line
from hccl_tools.machine import interpreter


def run(program: str, work: Callable[[], int]) -> int:
    """Does the `work` of the command that its user calls `program`; returns the exit code."""
    try:
        with how_far.showing():
            code = work()
        sys.stdout.flush()
        return code
    except Refusal as refusal:
        for line in refusal.lines:
            say(program, line, colours.MISTAKE)
        return refusal.status
    except ImportError as error:
        name = error.name or "jsonschema"  # the one package that is imported only to explain what is wrong
        say(
            program,
            tr(
                "this needs {needed}; {remedy}",
                needed=interpreter.needed(name),
                remedy=interpreter.remedy_for(name),
            ),
        )
    except OSError as error:  # stdout is full, or its reader has gone; all other files raise Refusal
        if fault := folder_fault():
            say(program, fault)
        elif error.filename is not None:  # a file that was not checked before
            say(program, f"{error.filename}: {strerror(error)}")
        elif not isinstance(error, BrokenPipeError):
            say(program, tr("cannot write to stdout: {reason}", reason=strerror(error)))
        from hccl_tools.build import output

        output.drop_stdout()
    except KeyboardInterrupt:
        say(program, tr("interrupted"))
        return 128 + signal.SIGINT
    return USAGE


def say(program: str, message: object, style: str = "") -> None:
    """Prints one line for the user, on stderr.  If stderr is closed, or is not read, only the exit code remains.

    style: of the whole line, one of colours.CODES.
    """
    if sys.stderr is not None:
        how_far.clear()
        line = colours.shown(one_line(f"{name_of(program)}: {message}"), style, colours.wanted(sys.stderr))
        with contextlib.suppress(OSError):
            print(line, file=sys.stderr, flush=True)


def escape_missing_letters() -> None:
    """Makes stdout escape letters that its encoding lacks; a server_id may have some."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
