"""The parser of every command; --help and usage errors are in the user's language, which --lang selects."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys

from hccl_tools.common import option_table, words
from hccl_tools.common.language import marked, speaks_chinese, tr
from hccl_tools.common.refusal import USAGE
from hccl_tools.common.typed import name_of
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, NoReturn

# argparse looks up its own words by gettext's function, of which it has the name `_`.
_OF_ARGPARSE = (
    marked("usage: "),
    marked("positional arguments"),
    marked("options"),
    marked("optional arguments"),  # Python 3.9
    marked("show this help message and exit"),
    marked("%(prog)s: error: %(message)s\n"),
    marked("argument %(argument_name)s: %(message)s"),
    marked("the following arguments are required: %s"),
    marked("unrecognized arguments: %s"),
    marked("expected one argument"),
    marked("expected at least one argument"),
    marked("ignored explicit argument %r"),
    marked("invalid %(type)s value: %(value)r"),
    marked("invalid choice: %(value)r (choose from %(choices)s)"),
    marked("not allowed with argument %s"),
    marked("one of the arguments %s is required"),
)


_PATHS = ("FILE", "DIR", "FOLDER", "PATH", "RUN")  # how the values that are paths are named
_ALIKE = 0.75  # of two options, as difflib measures it


class _Version(argparse.Action):
    """--version, for which git is asked only if it is needed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from hccl_tools.common import version

        sys.stdout.write(f"mindspore-launch {version.described()}\n")
        parser.exit()


class Parser(argparse.ArgumentParser):
    """argparse's, with the options of option_table, and --lang, which the module `language` finds by itself.

    Hyphens and underscores in their names are the same.  Old names are taken and not shown.
    """

    def __init__(self, program: str | None = None, description: str | None = None) -> None:
        if speaks_chinese():
            setattr(argparse, "_", tr)  # noqa: B010 - mypy does not know the name
        form: Any = argparse.RawDescriptionHelpFormatter
        name = name_of(program or os.path.basename(sys.argv[0]))
        super().__init__(prog=name, description=description, formatter_class=form, allow_abbrev=False)
        self._instead: dict[str, str] = {}  # {name that --help does not show: the one that it shows}
        self._former: list[argparse.Action] = []  # options that were arguments
        self.usage_of_mistake: str | None = None  # where --help has a usage of its own
        self.option("lang")
        known = option_table.TABLE["version"]
        self.add_argument("--version", action=_Version, nargs=0, help=tr(known.meaning))

    def option(self, name: str, note: str = "", **more: Any) -> None:
        """Adds an option of the table.

        note: what to say of it here, after its meaning: its default, such as " (default: 3)", in the user's language.
        more: for add_argument, such as a type.
        """
        known = option_table.TABLE[name]
        if known.takes == "-":
            more["action"] = "store_true"
        elif "|" in known.takes:
            more["choices"] = known.takes.split("|")
        else:
            more["metavar"] = known.takes
        shown = (known.shown or f"--{name}").split()
        action = self.add_argument(*shown, dest=name, help=tr(known.meaning) + note, **more)
        for old in known.old.split():
            self._option_string_actions[old] = action
            self._instead[old] = f"--{name}"

    def former_arguments(self, *names: str) -> None:
        """Makes these options required.  They were arguments in this order, and are still accepted as such."""
        self._former = [action for name in names for action in self._actions if action.dest == name]

    def json(self, plain: str = "text", note: str = "") -> None:
        """Adds --json.  plain: how --format of earlier versions, which is still taken, names the form for people."""
        self.option("json", note)
        forms = (plain, "json", *(["svg"] if "--svg" in self._option_string_actions else []))
        self.add_argument("--format", choices=forms, action=_Form, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
        self._instead["--format"] = "--json"

    def parse_known_args(  # type: ignore[override]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """argparse's method, for words with hyphens or underscores."""
        words = list(sys.argv[1:] if args is None else args)
        end = words.index("--") if "--" in words else len(words)
        return super().parse_known_args([*map(self._spelt, words[:end]), *words[end:]], namespace)

    def _spelt(self, word: str) -> str:
        """The word as argparse knows it."""
        name, equals, value = word.partition("=")
        known = f"--{option_table.bare(name)}"
        return known + equals + value if name.startswith("--") and known in self._option_string_actions else word

    def parse_args(self, args: Any = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override]
        """The arguments.  A word that the command does not know ends it, with the option that is nearly the same."""
        words = [self._at_home(word) for word in (sys.argv[1:] if args is None else args)]
        found, unknown = self.parse_known_args(words, namespace)
        unknown = self._take_former(found, unknown)
        if unknown:
            self.error(tr("unrecognized arguments: %s") % " ".join(unknown) + self._meant(unknown))
        return found

    def _take_former(self, found: argparse.Namespace, unknown: list[str]) -> list[str]:
        """Fills options that were arguments from words that no option took; returns the other words."""
        missing = [action for action in self._former if getattr(found, action.dest) is None]
        rest = []
        for word in unknown:
            if missing and not word.startswith("-"):
                setattr(found, missing.pop(0).dest, word)
            else:
                rest.append(word)
        if missing and not rest:
            names = ", ".join(action.option_strings[0] for action in missing)
            self.error(tr("the following arguments are required: %s") % names)
        return rest

    def refuse_empty(self, options: argparse.Namespace) -> None:
        """Ends the command if an option, or an argument, has an empty value."""
        for name, value in vars(options).items():
            if value == "":
                self.error(tr("--{name} is empty", name=name))

    def format_usage(self) -> str:
        """argparse's usage, with required arguments outside the brackets."""
        with self._needing():
            return super().format_usage()

    def format_help(self) -> str:
        """The same for --help."""
        with self._needing():
            return super().format_help()

    @contextlib.contextmanager
    def _needing(self) -> Iterator[None]:
        """In here the options that were arguments are required; argparse itself would not see them there."""
        for action in self._former:
            action.required = True
        yield
        for action in self._former:
            action.required = False

    def _at_home(self, word: str) -> str:
        """The word with the user's home folder for ~, where it is --option=~/path; see words.with_home."""
        option, equals, value = self._spelt(word).partition("=")
        action = self._option_string_actions.get(option) if equals else None
        is_path = action is not None and str(action.metavar).startswith(_PATHS)
        return f"{option}={words.with_home(value)}" if is_path else word

    def _meant(self, unknown: list[str]) -> str:
        from difflib import get_close_matches  # 2 ms, for a mistake

        word = next((word for word in unknown if word.startswith("-")), "")
        option = f"--{option_table.bare(word)}"
        names = [name for name, action in self._option_string_actions.items() if self._is_known(name, action)]
        begun = [name for name in names if len(option) > len("--x") and name.startswith(option)]
        near = begun or get_close_matches(option, names, 1, _ALIKE)
        return tr("; did you mean {option}?", option=self._instead.get(near[0], near[0])) if near else ""

    def _is_known(self, name: str, action: argparse.Action) -> bool:
        """Whether people may mean it: no option of ours alone, such as --answer."""
        return name.startswith("--") and (action.help != argparse.SUPPRESS or name in self._instead)

    def error(self, message: str) -> NoReturn:
        """Ends the command; argparse itself would print the words of the command line as they are."""
        if sys.stderr is None:  # it is closed; argparse would write to stdout
            self.exit(USAGE)
        self.usage = self.usage_of_mistake or self.usage
        super().error(one_line(message))


class _Form(argparse.Action):
    """--format NAME of earlier versions: each form but the first is a flag of its own now."""

    def __call__(self, _parser: Any, namespace: Any, form: Any, _option: Any = None) -> None:
        for name in tuple(self.choices or ())[1:]:
            setattr(namespace, name, name == form)
