"""Masks secrets in logs: text with the name or form of a secret, and the values of the job's own secrets."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from urllib.parse import quote

from hccl_tools.common.language import marked
from hccl_tools.common.record import Row
from tools.diagnosis.bundle import names
from tools.diagnosis.bundle.view import Span, View, squeezed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
MASK = b"<masked>"
LONGEST = 64 << 10  # bytes of a secret: one that lies across a cut is found up to that length
_MOST_VALUES = 1000

_WORDS = (
    *(b"password", b"passwd", b"passphrase", b"secret", b"token", b"key", b"credential", b"auth", b"cookie"),
    *(b"signature", b"webhook", b"_pwd", b"_pass", b"_pat"),
)
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_REST_OF_NAME = re.compile(rb"[\w.-]{0,256}")
_SETS = re.compile(rb"""\\{0,3}["']?[ \t]{0,16}(?P<set>=>?|:|>|,(?=[ \t]{0,16}\\{0,3}["']))[ \t]{0,16}""")
_OPTION = re.compile(rb"""\\{0,3}["']?(?:[ \t]{1,16}|\\?\r?\n[ \t]{0,16})(?!--?[A-Za-z])""")
# In quotes, or a word, which a quote ends that closes something around it.
_VALUE = re.compile(
    rb"""\\{1,3}["'](?P<escaped>[^"'\\\n]{0,8192})"""
    rb"""|"(?P<double>(?:\\.|[^"\\\n]){0,8192})|'(?P<single>(?:\\.|[^'\\\n]){0,8192})"""
    rb"""|(?P<word>(?:[^\s<"']|["'](?![,}\]:)\s]|\Z)){1,8192})"""
)
_SCHEME = rb"(?:basic|bearer|digest|negotiate|token|apikey|aws4-hmac-sha256|sdk-hmac-sha256)"
_HEADER = re.compile(
    rb"""\s{0,16}\\?["']?(?P<scheme>""" + _SCHEME + rb"""\s{1,8}[^\s"'<]{1,8192}[^\n"'<]{0,8192})"""
    rb"""|[ \t]{0,16}\\?["']?(?P<line>[^\n"'<\s][^\n"'<]{0,8192})""",
    re.IGNORECASE,
)
_IS_HEADER = re.compile(r"(?:authorization|cookie)$", re.IGNORECASE)


class Masker:
    """Knows the values of a job's secrets, {value: the name of its variable}."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._needles: list[tuple[bytes, bool, str]] = []  # the bytes, whether blanks count, the name
        longest_first = sorted((value for value in values if len(value) >= names.SHORTEST), key=len, reverse=True)
        for value in longest_first[:_MOST_VALUES]:
            for form in _forms_of(value):
                joined = squeezed(form)
                blanks = len(joined) < names.SHORTEST
                self._needles.append((form if blanks else joined, blanks, shown(values[value])))

    def spans(self, data: bytes) -> list[Span]:
        """The secrets in the bytes, in order; none of them overlaps another."""
        view = View(data)
        lower = view.text.lower()
        found = [view.span(*one) for one in find(view.text, lower)]
        found += [view.span(*one) for one in _assignments(view.text, lower)]
        found += self._values_in(view)
        return merged(found)

    def _values_in(self, view: View) -> Iterator[Span]:
        joined = View(view.data, joined=True) if self._needles else view
        for needle, blanks, name in self._needles:
            where = view if blanks else joined
            place = where.text.find(needle)
            while place >= 0:
                yield where.span(place, place + len(needle), name)
                place = where.text.find(needle, place + len(needle))

    def text(self, text: str, counts: Counter[str] | None = None) -> str:
        """The text without the secrets in it."""
        data = text.encode("utf-8", "surrogateescape")
        return applied(data, self.spans(data), counts).decode("utf-8", "surrogateescape")


def merged(spans: list[Span]) -> list[Span]:
    """The spans in order, those that overlap made one; the first of them gives the name."""
    found: list[Span] = []
    for span in sorted(spans):
        if found and span.start < found[-1].end:
            found[-1] = found[-1]._replace(end=max(found[-1].end, span.end))
        elif span.start < span.end:
            found.append(span)
    return found


def applied(data: bytes, spans: list[Span], counts: Counter[str] | None = None) -> bytes:
    """The bytes with the spans masked, and counted."""
    pieces, place = [], 0
    for span in spans:
        pieces += [data[place : span.start], MASK]
        place = span.end
        if counts is not None:
            counts[span.what] += 1
    return b"".join([*pieces, data[place:]])


def _forms_of(value: str) -> list[bytes]:
    """The value as it is, and as URLs, JSON and HTTP headers write it."""
    raw = value.encode("utf-8", "surrogateescape")
    texts = [quote(raw, safe=""), quote(raw), json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    coded = [text.encode("utf-8", "surrogateescape") for text in texts]
    return list(dict.fromkeys([raw, *coded, base64.b64encode(raw).rstrip(b"=")]))


def _assignments(text: bytes, lower: bytes) -> Iterator[tuple[int, int, str]]:
    """NAME=VALUE, NAME: VALUE, --NAME VALUE and the like: (start, end, NAME) of each value that is a secret."""
    for word in _WORDS:
        place = lower.find(word)
        while place >= 0:
            before = text[max(0, place - 64) : place]
            start = place - len(before) + len(before.rstrip(_LETTERS))
            end = _end_of_name(text, place)
            name = text[start:end].decode("utf-8", "replace")
            value = _value(text, end, name)
            if value:
                yield (*value, shown(name))
            place = lower.find(word, value[1] if value else end)


def _end_of_name(text: bytes, place: int) -> int:
    found = _REST_OF_NAME.match(text, place)
    return found.end() if found else place


def _value(text: bytes, end: int, name: str) -> tuple[int, int] | None:
    """Where the value of the name that ends there is; None without one, or if it is not a secret."""
    is_option = name.startswith("-")
    sets = _SETS.match(text, end) or (_OPTION.match(text, end) if is_option else None)
    if not sets or not names.may_hide(name, is_option, sets.re is _SETS and sets["set"] == b"="):
        return None
    if _IS_HEADER.search(name):
        header = _HEADER.match(text, sets.end())
        return _span_of(text, header) if header else None
    value = _VALUE.match(text, sets.end())
    if not value or not value.lastgroup:
        return None
    shown = value[value.lastgroup].decode("utf-8", "replace")
    return _span_of(text, value) if names.is_value(name, shown) else None


def _span_of(text: bytes, found: re.Match[bytes]) -> tuple[int, int] | None:
    group = found.lastgroup or ""
    start, end = found.span(group)
    if found[group].startswith(MASK):
        return None
    return start, broken(text, end) if end - start >= names.SHORTEST else end


def shown(name: str) -> str:
    """The name of an option or a variable, as a message has it."""
    return name.strip("-.")[:64]


# ---- Secrets that show by their form: passwords in URLs, tokens of public services, access keys, private keys.


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
    """The end of a word that continues in the next lines; `end`: its end on the first of them."""
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
