"""Translates messages into the user's language: English from the code, Chinese from hccl_tools/locale."""

from __future__ import annotations

import contextlib
import functools
import os
import sys

TYPE_CHECKING = False  # the launch path does not import typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from gettext import NullTranslations
    from typing import TextIO

DOMAIN = "launch"  # the name of the catalogues, launch.mo
LOCALE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "locale")

_OURS = ("scripts/", "tools/", "docs/", "make data")  # in a text with a command of ours
_rewriters: list[Callable[[str, bool], str]] = []  # at most one; see rewrite_by
_records: list[bool] = []  # not empty: in_english


def tr(message: str, **values: object) -> str:
    """The message in the user's language, with the values in the places that have their names, as in str.format.

    Our commands in it become those that this user types: see hccl_tools/common/typed.py.

    message: English, a constant: tools/pages/messages.py collects them for the catalogue.
    """
    catalogue = None if _records else _catalogue()
    text = message if catalogue is None else catalogue.gettext(message)
    if _rewriters and any(part in text for part in _OURS):
        text = _rewriters[0](text, bool(values))
    return text.format(**values) if values else text


def strerror(error: BaseException) -> str:
    """Why a file cannot be used, or a call failed, in the user's language.

    tools/pages/messages.py lists the system's reasons that the catalogue translates.
    """
    if isinstance(error, UnicodeDecodeError):
        return tr("it is not a text file")
    text: str | None = getattr(error, "strerror", None)
    return tr(text) if text else str(error) or type(error).__name__


def rewrite_by(function: Callable[[str, bool], str]) -> None:
    """Lets `function` change the commands in texts of `tr`; True: the text goes to str.format afterwards.

    hccl_tools/common/typed.py calls it, which every command imports.
    """
    _rewriters[:] = [function]


def speaks_chinese() -> bool:
    """Whether `tr` returns Chinese."""
    return not _records and _catalogue() is not None


@contextlib.contextmanager
def in_english() -> Iterator[None]:
    """Makes `tr` return English inside: for a record that programs read, such as launch.json."""
    _records.append(True)
    try:
        yield
    finally:
        _records.pop()


def marked(message: str) -> str:
    """The message itself: a constant of a module, which is translated where it is used, by tr(NAME)."""
    return message


NAMES = ("zh", "en")  # the values of --lang
MEANING = marked("the language of the messages (default: that of your locale)")  # what --help prints about it


def use(name: str) -> None:
    """Chooses zh or en for this process and those that it starts."""
    os.environ["LAUNCH_LANG"] = name
    _catalogue.cache_clear()


def is_chinese(environment: os._Environ[str] | dict[str, str] = os.environ, words: Iterable[str] = ()) -> bool:
    """Whether the user reads Chinese, according to the words of the command.

    --lang counts, then LAUNCH_LANG.  Else these are the rules of GNU gettext: LANGUAGE counts, unless the locale is C.
    """
    chosen = typed(words)
    if chosen:
        return chosen == "zh"
    if environment.get("LAUNCH_LANG") in NAMES:
        return environment["LAUNCH_LANG"] == "zh"
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "C")
    if locale in ("C", "POSIX"):
        return False
    languages = (environment.get("LANGUAGE") or locale).split(":")
    return next((name.startswith("zh") for name in languages if name.startswith(("zh", "en"))), False)


def typed(words: Iterable[str]) -> str:
    """zh or en after the first --lang before "--"; empty without it, and for another value."""
    before = ""
    for word in words:
        value = word if before == "--lang" else word[len("--lang=") :] if word.startswith("--lang=") else ""
        if value:
            return value if value in NAMES else ""
        if word == "--":
            break
        before = word
    return ""


def _has_chinese(stream: TextIO | None) -> bool:
    """Whether the stream can write Chinese; one that is closed does not matter."""
    try:
        "中".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


@functools.cache
def _catalogue() -> NullTranslations | None:
    """The Chinese messages; None for English: gettext, and what it imports, is for those who need it."""
    if not is_chinese(words=sys.argv[1:]) or not all(map(_has_chinese, (sys.stdout, sys.stderr))):
        return None
    import gettext

    return gettext.translation(DOMAIN, LOCALE, ["zh"], fallback=True)
