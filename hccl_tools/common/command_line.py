"""The parser of every command: its --help and its mistakes are in the user's language, which --lang chooses."""

from __future__ import annotations

import argparse
import sys

from hccl_tools.common import home, language
from hccl_tools.common.language import marked, speaks_chinese, tr
from hccl_tools.common.refusal import USAGE
from hccl_tools.common.words import one_line

TYPE_CHECKING = False
if TYPE_CHECKING:
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


class Parser(argparse.ArgumentParser):
    """argparse's, with --lang, whose value the module `language` finds on the command line by itself."""

    def __init__(self, program: str | None = None, description: str | None = None) -> None:
        if speaks_chinese():
            setattr(argparse, "_", tr)  # noqa: B010 - mypy does not know the name
        form: Any = argparse.RawDescriptionHelpFormatter
        super().__init__(prog=program, description=description, formatter_class=form, allow_abbrev=False)
        self.add_argument("--lang", choices=language.NAMES, help=tr(language.MEANING))

    def parse_args(self, args: Any = None, namespace: Any = None) -> argparse.Namespace:  # type: ignore[override]
        """The arguments.  A word that the command does not know ends it, with the option that is nearly the same."""
        found: argparse.Namespace
        words = [self._at_home(word) for word in (sys.argv[1:] if args is None else args)]
        found, unknown = self.parse_known_args(words, namespace)
        if unknown:
            self.error(tr("unrecognized arguments: %s") % " ".join(unknown) + self._meant(unknown))
        return found

    def _at_home(self, word: str) -> str:
        """The word with the user's home folder for ~, where it is --option=~/path; see home.py."""
        option, equals, value = word.partition("=")
        action = self._option_string_actions.get(option) if equals else None
        is_path = action is not None and str(action.metavar).startswith(_PATHS)
        return f"{option}={home.path(value)}" if is_path else word

    def _meant(self, unknown: list[str]) -> str:
        from difflib import get_close_matches  # 2 ms, for a mistake

        option = next((word.partition("=")[0] for word in unknown if word.startswith("--")), "")
        names = [name for name in self._option_string_actions if name.startswith("--")]
        begun = [name for name in names if len(option) > len("--x") and name.startswith(option)]
        near = begun or get_close_matches(option, names, 1, _ALIKE)
        return tr("; did you mean {option}?", option=near[0]) if near else ""

    def error(self, message: str) -> NoReturn:
        """Ends the command; argparse itself would print the words of the command line as they are."""
        if sys.stderr is None:  # it is closed; argparse would write to stdout
            self.exit(USAGE)
        super().error(one_line(message))
