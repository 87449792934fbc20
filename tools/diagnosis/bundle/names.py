"""Recognises names: of secrets (variables, options, fields), unless their values are none, and of a bundle's pages."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

SHORTEST = 8  # characters of a value that is looked for wherever it may be, and of a token

_SECRET = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|KEY|CREDENTIAL|AUTH|COOKIE|WEBHOOK|SIGNATURE"
    r"|(?:^|[_.-])(?:PASS|AK|SK|PAT)(?:$|[_.-])|[_.-]PWD$"
)
_HARMLESS = re.compile(r"TOKENIZERS?|TOKENIZATION|KEYBOARD|KEYWORDS?|MONKEY|AUTHORS?(?!I)")
_STRONG = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|COOKIE|AUTHORIZATION|[_.-](?:PWD|PASS)$"
    r"|(?:API|ACCESS|PRIVATE|AUTH|ACCOUNT|SIGNING|ENCRYPTION|SSH)[_.-]?KEY"
)
_TOKEN = re.compile(r"(?:TOKEN|SIGNATURE)$")
_NOTHING = re.compile(r"(?:none|null|nil|true|false|yes|no|undefined|\*+|<masked>.*|)[,;.)\]}]*", re.IGNORECASE)
_COUNT = re.compile(r"\d{1,7}(?:\.\d{1,7})?[,;.)\]}]?")  # --max_tokens 4096
EXPLANATION, CONTENTS, MASKED = "explanation.txt", "contents.txt", "masked.txt"
DOCTOR, VERSIONS = "doctor.txt", "versions.txt"
_ALL = (EXPLANATION, CONTENTS, MASKED, DOCTOR, VERSIONS)


def is_secret(name: str) -> bool:
    """Whether a variable or an option of that name holds a secret."""
    return bool(_SECRET.search(_HARMLESS.sub("", name.upper())))


def may_hide(name: str, is_option: bool, is_set: bool) -> bool:
    """Whether something with this name in a log may be a secret.

    is_option: --NAME; is_set: NAME=VALUE, not NAME: VALUE.  Logs are full of words such as key and token, which count
    less there than in a list of variables.
    """
    plain = _HARMLESS.sub("", name.upper())
    if not _SECRET.search(plain):
        return False
    return bool(_STRONG.search(plain) or is_option or (is_set and name == name.upper()) or _TOKEN.search(plain))


def is_value(name: str, value: str) -> bool:
    """Whether the value of such a name is a secret."""
    if _NOTHING.fullmatch(value):
        return False
    plain = _HARMLESS.sub("", name.upper())
    if _STRONG.search(plain):
        return True
    if _COUNT.fullmatch(value):
        return False
    return name == name.upper() or name.startswith("-") or len(value) >= SHORTEST


def is_page(name: str, others: Collection[str]) -> bool:
    """Whether the file `name` is one of them: next to it are the two that every bundle has."""
    folder, base = os.path.split(name)
    return base in _ALL and all(os.path.join(folder, page) in others for page in (CONTENTS, MASKED))
