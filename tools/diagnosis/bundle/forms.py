"""Secrets that show by their form: passwords in URLs, tokens of public services, access keys, private keys."""

from __future__ import annotations

import re

from hccl_tools.common.language import marked
from hccl_tools.common.record import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

URL = marked("user and password in a URL")
BEARER = marked("Authorization")
ACCESS_KEY = marked("access key")
PRIVATE_KEY = marked("private key")
TOKEN = marked("token")

_URL = rb"""://(?P<v>[^\s/@:"'<>]{0,256}:(?!\d{1,5}(?:/|\s|\Z))(?:(?!://)[^\s"'<>]){1,512})@"""
_URL_IN_JSON = rb""":\\/\\/(?P<v>[^\s/@:"'<>]{0,256}:(?:(?!:\\/)[^\s"'<>]){1,512})@"""
_TOKEN_IN_URL = rb"""://(?P<v>[^\s/@:"'<>]{16,512})@"""
_BEARER = rb"""bearer["']?[\s:=]{1,16}["']?(?P<v>[A-Za-z0-9._~+/=-]{6,8192})"""
_AK_SK = rb"""(?<![A-Za-z0-9])[as]k\\?["']?\s{0,4}[:=]\s{0,4}\\?["']?(?P<v>[\w+/=-]{10,256})"""
_JWT = rb"(?<![\w.-])(?P<v>eyJ[\w-]{8,8192}\.[\w-]{4,8192}\.?[\w-]{0,8192})"
_BREAK = rb"""(?:[\s"',]|\\[nr])"""
_BEGIN, _END = rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-----", rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY"
# With its end, or with all that looks like a part of it.
_KEY_BLOCK = (
    rb"(?P<v>" + _BEGIN + rb"(?:(?:(?!-----BEGIN).){0,60000}?" + _END + rb"[A-Z ]{0,10}-----"
    rb"|" + _BREAK + rb"{0,16}(?:[A-Za-z0-9+/=]{8,512}" + _BREAK + rb"{0,16}){0,400}))"
)
_LINE_OF_KEY = re.compile(rb"[A-Za-z0-9+/=]{1,512}")
# A word alone on the lines that follow: a terminal or a program has broken a long word.
_BROKEN = re.compile(rb"""(?:\\?\r?\n[ \t]*[A-Za-z0-9._~+/=-]{8,512}(?=[ \t]*["']?[ \t]*(?:\r?\n|\Z))){1,40}""")
_MOST_OF_KEY = 60_000


class Form(Row):
    """A secret: the lower-case text that begins it, what it is, and all of it."""

    start: bytes
    what: str
    pattern: re.Pattern[bytes]
    breaks: bool = True  # whether it may go on in the next lines


class Found(Row):
    """A secret in a text."""

    start: int
    end: int
    what: str


def _form(start: bytes, what: str, pattern: bytes, breaks: bool = True, flags: int = re.IGNORECASE) -> Form:
    return Form(start, what, re.compile(pattern, flags), breaks)


_PREFIXES = (b"hf_", b"ghp_", b"gho_", b"ghs_", b"github_pat_", b"glpat-", b"sk-", b"xoxb-", b"xoxp-", b"akia")
_ENDS = (b"=", b":", b" =", b" :", b'"', b"'", b"\\")
_FORMS = (
    _form(b"://", URL, _URL, breaks=False),
    _form(b"://", URL, _TOKEN_IN_URL, breaks=False),
    _form(b":\\/\\/", URL, _URL_IN_JSON, breaks=False),
    _form(b"bearer", BEARER, _BEARER),
    *(_form(word + end, ACCESS_KEY, _AK_SK) for word in (b"ak", b"sk") for end in _ENDS),
    *(_form(start, TOKEN, rb"(?<![A-Za-z0-9_])(?P<v>" + start + rb"[\w.-]{16,4096})") for start in _PREFIXES),
    _form(b"eyj", TOKEN, _JWT),
    _form(b"-----begin", PRIVATE_KEY, _KEY_BLOCK, breaks=False, flags=re.DOTALL),
)


def find(text: bytes, lower: bytes) -> Iterator[Found]:
    """The secrets in a text; `lower`: the text in lower case.  The time grows with the length, whatever the text is."""
    for form in _FORMS:
        place = lower.find(form.start)
        while place >= 0:
            found = form.pattern.match(text, place)
            end = place + len(form.start)
            if found:
                end = broken(text, found.end("v")) if form.breaks else found.end("v")
                yield Found(found.start("v"), end, form.what)
            place = lower.find(form.start, end)
    yield from _ends_of_keys(text)


def broken(text: bytes, end: int) -> int:
    """Where a word that goes on in the next lines ends; `end`: its end on the first of them."""
    found = _BROKEN.match(text, end)
    return found.end() if found else end


def _ends_of_keys(text: bytes) -> Iterator[Found]:
    """Private keys of which the beginning is not there."""
    least = 0
    for found in re.finditer(_END, text):
        start = found.start()
        while start > max(least, found.start() - _MOST_OF_KEY):
            line = text.rfind(b"\n", max(least, start - 600), start - 1) + 1 or least
            if not _LINE_OF_KEY.fullmatch(text[line:start].strip()):
                break
            start = line
        if start < found.start():
            yield Found(start, found.start(), PRIVATE_KEY)
        least = found.end()
