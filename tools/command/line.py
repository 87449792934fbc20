"""The state of one command line while it is parsed: what was found so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import USAGE, Refusal
from tools.command import table
from tools.command.declaration import Declaration


class MpirunWords(Record):
    """The user's arguments for mpirun."""

    passed: list[str]  # its words
    given: dict[str, str]  # option or parameter that may be passed once: its value
    export: set[str]  # variables that it passes to all hosts, whatever their names: -x NAME
    values: dict[str, str]  # -x NAME=VALUE: for the ranks alone

    @classmethod
    def none(cls) -> MpirunWords:
        """No words."""
        return cls(passed=[], given={}, export=set(), values={})

    def binds(self) -> bool:
        """Whether they set how ranks are bound; Open MPI 5 binds for :PE=N, and rejects --bind-to none then."""
        return "bind_to" in self.given or ":PE=" in self.given.get("map_by", "").upper()


class Line:
    """The known facts of a command line.  Options have underscores in their names; the last one of a name counts."""

    def __init__(self, declaration: Declaration, environ: Mapping[str, str]) -> None:
        self.declaration = declaration
        self.environ = environ
        self.launches = bool(declaration.engine)
        self.table = table.of(declaration.options, declaration.without if self.launches else None)
        # of other launchers: each takes an option from the front and returns the number of words, 0 if it is none
        self.others: list[Callable[[Line, Sequence[str]], int]] = []
        self.names = declaration.arguments  # of the positional arguments; at the end of those that were given
        self.options: list[tuple[str, str]] = []  # name and value as the user gave them; a flag is 1
        self.defaults: list[str] = []  # the words of MSLAUNCH_OPTIONS that hold, see defaults.py
        self.arguments: list[str] = []  # positional
        self.trainer: list[str] = []  # the words after --
        self.program: list[str] = []  # a program with its words
        self.notes: list[str] = []
        self.environment: dict[str, str] = {}  # variables for the job
        self.mpirun = MpirunWords.none()
        self.hosts = ""  # --nnodes of torchrun, see synonyms.finish
        self.per_device = ("", "", "")  # of --nproc_per_node auto: as typed, our option, the word; see per_device.py
        self.per_host = False  # the number of ranks of a host was given, by another launcher's option
        self.one_host: list[str] = []  # options of mpirun that are for one host only

    def value(self, option: str, default: str = "") -> str:
        """The user's value, otherwise the default."""
        return next((value for name, value in reversed(self.options) if name == option), default)

    def given(self, option: str) -> bool:
        """Whether the user gave the option; --bind_core=False cancels it."""
        return self.value(option) != ""

    def is_list_of_hosts(self) -> bool:
        """Whether the script takes hosts as its argument, and has got some."""
        return self.names[:1] == ("HOSTS",) and len(self.arguments) > 0

    def number(self, option: str, default: str = "0") -> int:
        """Its value, a whole number."""
        value = self.value(option, default)
        if not is_number(value):
            raise self.misused(
                "--{option} {value} is not a whole number of at most 8 digits", option=option, value=value
            )
        return int(value)

    def choice(self, option: str, default: str) -> str:
        """Its value, one of those in the table."""
        return self.one_of(option, self.value(option, default), self.table[option].takes.split("|"))

    def one_of(self, option: str, value: str, choices: Sequence[str]) -> str:
        """The value of the option, which must be one of these."""
        if value not in choices:
            raise self.misused(
                "--{option} {value}: write one of {choices}", option=option, value=value, choices=", ".join(choices)
            )
        return value

    def note(self, text: str) -> None:
        """A note about what the user typed, which is printed once the launch is sure to start."""
        self.notes.append(text)

    def note_needless(self, option: str, reason: str) -> None:
        """The same about an option of another launcher that is not needed here."""
        self.note(tr("note: {option} is not needed: {reason}", option=option, reason=reason))

    def mistake(self, text: str) -> Refusal:
        """The mistake, and how to get help."""
        command = self.declaration.command_line()
        return Refusal(USAGE, harmless(tr("{mistake}; see: {command} --help", mistake=text, command=command)))

    def misused(self, message: str, **values: object) -> Refusal:
        """The same of what `tr` makes of a message."""
        return self.mistake(tr(message, **values))

    def hint(self) -> str:
        """The end of a message about a word too many."""
        return tr("; trainer arguments come after --") if self.launches else ""


def is_number(text: str) -> bool:
    """Whether an option takes the text as its number."""
    return len(text) <= 8 and text.isascii() and text.isdigit()
