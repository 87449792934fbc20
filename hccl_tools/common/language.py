"""Messages in the user's language: in English as the code has them, in Chinese from hccl_tools/locale."""

from __future__ import annotations

import functools
import os

TYPE_CHECKING = False  # the launch path does not import typing
if TYPE_CHECKING:
    from gettext import NullTranslations

DOMAIN = "launch"  # the name of the catalogues, launch.mo, as bash's TEXTDOMAIN has it
LOCALE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "locale")


def tr(message: str, **values: object) -> str:
    """The message in the user's language, with the values in the places that have their names, as in str.format.

    message: English, a constant: tools/pages/messages.py collects them for the catalogue.
    """
    catalogue = _catalogue()
    text = message if catalogue is None else catalogue.gettext(message)
    return text.format(**values) if values else text


def marked(message: str) -> str:
    """The message itself: a constant of a module, which is translated where it is used, by tr(NAME)."""
    return message


def is_chinese(environment: os._Environ[str] | dict[str, str] = os.environ) -> bool:
    """Whether the user reads Chinese.

    LAUNCH_LANG is zh or en under our scripts.  Else these are the rules of GNU gettext: LANGUAGE counts, unless the
    locale is C.  scripts/lib/language.sh has the same rules.
    """
    if environment.get("LAUNCH_LANG") in ("zh", "en"):
        return environment["LAUNCH_LANG"] == "zh"
    names = ("LC_ALL", "LC_MESSAGES", "LANG")
    locale = next((environment[name] for name in names if environment.get(name)), "C")
    if locale in ("C", "POSIX"):
        return False
    languages = (environment.get("LANGUAGE") or locale).split(":")
    return next((name.startswith("zh") for name in languages if name.startswith(("zh", "en"))), False)


@functools.cache
def _catalogue() -> NullTranslations | None:
    """The Chinese messages; None for English: gettext, and what it imports, is for those who need it."""
    if not is_chinese():
        return None
    import gettext

    return gettext.translation(DOMAIN, LOCALE, ["zh"], fallback=True)
