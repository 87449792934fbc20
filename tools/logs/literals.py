"""Extracts texts from a regular expression: each matching line contains one of them, and they are found much faster.

They come from the result of Python's own regex parser.  That parser may change.  Anything unknown counts as "no text is
needed", which costs time but loses no line.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

_DROPPED = b"0123456789abcdefABCDEF+-.=#"
_LOWER = bytes.maketrans(b"GHIJKLMNOPQRSTUVWXYZ", b"ghijklmnopqrstuvwxyz")
_LIKE_ALONE = (
    "LITERAL NOT_LITERAL ANY ANY_ALL IN RANGE NEGATE BRANCH SUBPATTERN MAX_REPEAT MIN_REPEAT MAXREPEAT AT AT_BEGINNING "
    "AT_END AT_BOUNDARY CATEGORY CATEGORY_DIGIT CATEGORY_NOT_DIGIT CATEGORY_SPACE CATEGORY_NOT_SPACE CATEGORY_WORD "
    "CATEGORY_NOT_WORD"
)
_CASELESS = re.compile(r"\(\?[aLmsux]*i")
_LEAST = 4  # bytes: shorter texts are everywhere
_MOST = 24  # alternatives of one expression: a class of two characters doubles them
_WIDE = 4  # characters of a class that are worth alternatives


def shape_of(text: bytes) -> bytes:
    """The common text of lines of one form: without numbers, addresses and bars, in lower case."""
    return text.translate(_LOWER, _DROPPED)


def texts_of(source: str) -> tuple[str, ...]:
    """Texts, one of which is in each line that the expression matches; none: they are unknown, or too many.

    Raises re.error: it is not an expression.
    """
    best = _best(_runs(_parsed(source)))
    return tuple(sorted({text.lower() for text in best} if is_caseless(source) else best))


def is_caseless(source: str) -> bool:
    """Whether a part of the expression takes both cases; its texts are in lower case."""
    return bool(_CASELESS.search(source))


def is_for_blocks(source: str, beside: tuple[str, ...] = ()) -> bool:
    """Whether a search in many lines at once finds each line that the expression matches alone.

    That is not so for what looks at the ends of a text or at what is next to it, nor for what gives nothing back, nor
    for what may take nothing.  beside: operators of Python's parser that are allowed, too.
    """
    parsed = _parsed(source)
    return parsed.getwidth()[0] > 0 and _operators(parsed) <= {*_LIKE_ALONE.split(), *beside}


def _operators(parsed: Any) -> set[str]:
    """The names of all operators and places in an expression."""
    if isinstance(parsed, (tuple, list)):
        return set().union(*map(_operators, parsed))
    if hasattr(parsed, "getwidth"):
        return set().union(*map(_operators, parsed.data))
    return set() if type(parsed) is int or parsed is None else {str(parsed)}


def _parsed(source: str) -> Any:
    try:
        from re import _parser as parser  # type: ignore[attr-defined,unused-ignore]
    except ImportError:  # Python 3.10 and older
        import sre_parse as parser  # type: ignore[no-redef,unused-ignore]
    return parser.parse(source, re.MULTILINE)


def _best(runs: list[set[str]]) -> set[str]:
    """The run whose least text states the most; with the same worth, that of the fewest texts."""
    worth = {index: _worth(run) for index, run in enumerate(runs) if run}
    worth = {index: value for index, value in worth.items() if value[1] >= _LEAST}
    return runs[max(worth, key=lambda index: (worth[index], -len(runs[index])))] if worth else set()


def _worth(run: set[str]) -> tuple[int, int]:
    texts = [text.encode() for text in run]
    return min(len(shape_of(text)) for text in texts), min(map(len, texts))


def _runs(parsed: Iterable[Any]) -> list[set[str]]:
    """Sets of texts; of each set one text is in what is taken."""
    runs: list[set[str]] = []
    open_run = {""}  # what may stand here, up to this part of the expression
    for operator, value in parsed:
        texts = _exact(str(operator), value)
        if texts is not None and len(texts) * len(open_run) <= _MOST:
            open_run = {before + text for before in open_run for text in texts}
            continue
        runs += [open_run, *_inside(str(operator), value)]
        open_run = texts if texts is not None and len(texts) <= _MOST else {""}
    return [*runs, open_run]


def _exact(operator: str, value: Any) -> set[str] | None:
    """All texts that this part takes; None, where they are too many or not known."""
    if operator == "LITERAL":
        return {chr(value)} if _is_plain(value) else None
    if (
        operator == "IN"
        and len(value) <= _WIDE
        and all(str(kind) == "LITERAL" and _is_plain(one) for kind, one in value)
    ):
        return {chr(one) for _, one in value}
    if operator in ("AT", "ASSERT", "ASSERT_NOT"):
        return {""}
    if operator in ("SUBPATTERN", "ATOMIC_GROUP"):
        return _exact_of_all(value[-1] if operator == "SUBPATTERN" else value)
    if operator == "BRANCH":
        each = [_exact_of_all(branch) for branch in value[1]]
        return None if any(texts is None for texts in each) else {text for texts in each for text in texts or ()}
    if operator.endswith("_REPEAT") and value[:2] == (0, 1):
        texts = _exact_of_all(value[2])
        return None if texts is None else {"", *texts}
    return None


def _is_plain(code: int) -> bool:
    """Whether the character is in one line, and in one case as it is in bytes."""
    return code != 10 and (code < 128 or chr(code).lower() == chr(code).upper())


def _exact_of_all(parsed: Iterable[Any]) -> set[str] | None:
    found = {""}
    for operator, value in parsed:
        texts = _exact(str(operator), value)
        if texts is None or len(texts) * len(found) > _MOST:
            return None
        found = {before + text for before in found for text in texts}
    return found


def _inside(operator: str, value: Any) -> list[set[str]]:
    """The runs within a part that has more than exact texts."""
    if operator == "SUBPATTERN":
        return _runs(value[-1])
    if operator == "ATOMIC_GROUP":
        return _runs(value)
    if operator.endswith("_REPEAT") and value[0] > 0:
        return _runs(value[2])
    if operator == "BRANCH":
        each = [_best(_runs(branch)) for branch in value[1]]
        return [{text for texts in each for text in texts}] if all(each) else []
    return []
