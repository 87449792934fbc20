"""The grammar of ``--device_num`` and ``--devices``: which devices of a host.

    range  = "[" number "," number ")"        half open: [4,8) is 4,5,6,7
    list   = number { "," number }            0,1,4,5
    number = "0" | a digit 1-9 { digit }

Blanks are allowed around numbers.  The order of a list is the order of the ranks.
"""

from __future__ import annotations

import re

from hccl_tools.common.language import marked, tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import one_line

MAX_DEVICE_ID = 64  # the largest device_id that HCCL's newest rank-table parser accepts

_RANGE = re.compile(r" *\[ *(0|[1-9][0-9]*) *, *(0|[1-9][0-9]*) *\) *")
_LIST = re.compile(r" *(?:0|[1-9][0-9]*)(?: *, *(?:0|[1-9][0-9]*))* *")
_HOW = marked('write a range such as "[0,8)" (8 itself is not in it) or a list such as "0,1,4,5"')


class RangeError(Refusal):
    """The text is not in the grammar, or names no device, one twice, or one that cannot exist."""

    def __init__(self, line: str) -> None:
        super().__init__(USAGE, one_line(line))


def parse(text: str) -> tuple[int, ...]:
    """The device ids that `text` names, in order.  Raises RangeError."""
    match = _RANGE.fullmatch(text)
    if match:
        first, end = _device_id(text, match[1], MAX_DEVICE_ID + 1), _device_id(text, match[2], MAX_DEVICE_ID + 1)
        if end <= first:
            raise RangeError(
                tr(
                    '"{text}" names no device: the second number must be larger than the first; {how}',
                    text=text,
                    how=tr(_HOW),
                )
            )
        return tuple(range(first, end))
    if _LIST.fullmatch(text):
        ids = tuple(_device_id(text, number, MAX_DEVICE_ID) for number in text.split(","))
        for position, device in enumerate(ids):
            if device in ids[:position]:
                raise RangeError(
                    tr('"{text}" names device {device} twice; a device carries one rank', text=text, device=device)
                )
        return ids
    raise RangeError(
        tr(
            '"{text}" is neither a range nor a list of devices: {fault}; {how}',
            text=text,
            fault=_fault(text),
            how=tr(_HOW),
        )
    )


def _device_id(text: str, number: str, largest: int) -> int:
    # The length first: int() of a long run of digits is slow, and from 4,300 digits on an error.
    if len(number.strip()) > 3 or int(number) > largest:
        raise RangeError(
            tr(
                '"{text}": {number} is too large; device ids run from 0 to {largest}',
                text=text,
                number=number.strip()[:20],
                largest=MAX_DEVICE_ID,
            )
        )
    return int(number)


def _fault(text: str) -> str:
    """The first thing that is wrong with `text`."""
    if not text.strip():
        return tr("it is empty")
    for char in text:
        if ord(char) > 127:
            return tr("'{char}' is not an ASCII character (typed with a Chinese keyboard?)", char=char)
        if char not in "[,) 0123456789":
            return tr("'{char}' is not allowed in it", char=char)
    if re.search(r"(?<![0-9])0[0-9]", text):
        return tr("numbers have no leading zeros")
    if "[" in text and ")" not in text:
        return tr("the ')' that ends a range is missing")
    if ")" in text and "[" not in text:
        return tr("the '[' that starts a range is missing")
    if "[" in text:
        return tr("a range has two numbers with a comma between them")
    return tr("numbers are separated by single commas")
