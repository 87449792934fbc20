"""Parses ``--devices``, which selects devices of a host.

    range  = "[" number "," number ")"        half open: [4,8) is 4,5,6,7
    list   = part { "," part }                0,1,4,5
    part   = number | number "-" number       0-3,8 is 0,1,2,3,8
    number = "0" | a digit 1-9 { digit }

Blanks are allowed around numbers.  The order of a list is the order of the ranks.

Other tools accept text that they do not check: MindSpore's hccl_tools.py and the scripts of mindformers extract two
numbers from it.  So [0,8] and [0-8) are [0,8) there.  If such a text can have only one meaning, we accept it with a
remark.
"""

from __future__ import annotations

import re

from hccl_tools.common.language import marked, tr
from hccl_tools.common.refusal import USAGE, Refusal
from hccl_tools.common.words import named, one_line

MAX_DEVICE_ID = 64  # the largest device_id that HCCL's newest rank-table parser accepts

_RANGE = re.compile(r" *\[ *(0|[1-9][0-9]*) *, *(0|[1-9][0-9]*) *\) *")
_LIST = re.compile(r" *(?:0|[1-9][0-9]*)(?: *[,-] *(?:0|[1-9][0-9]*))* *")
_OTHERS = re.compile(r" *\[ *(0|[1-9][0-9]*) *[,-] *(0|[1-9][0-9]*) *([\])]) *")  # as other tools take it
_USUAL_SIZES = (1, 2, 4, 8, 16)
_HOW = marked('write a range such as "[0,8)" (8 itself is not in it) or a list such as "0,1,4,5"')


class RangeError(Refusal):
    """The text is not in the grammar, or names no device, one twice, or one that cannot exist."""

    def __init__(self, message: str, **values: object) -> None:
        super().__init__(USAGE, one_line(tr(message, **values)))


def parse(text: str) -> tuple[int, ...]:
    """The device ids that `text` names, in order.  Raises RangeError."""
    match = _RANGE.fullmatch(text)
    if match:
        return _half_open(text, match[1], match[2])
    if match := _OTHERS.fullmatch(text):
        return _of_others(text, match)
    if _LIST.fullmatch(text):
        ids = tuple(device for part in text.split(",") for device in _part(text, part))
        for position, device in enumerate(ids):
            if device in ids[:position]:
                raise RangeError(
                    '"{text}" names device {device} twice; a device carries one rank', text=text, device=device
                )
        return ids
    raise RangeError(
        '"{text}" is neither a range nor a list of devices: {fault}; {how}', text=text, fault=_fault(text), how=tr(_HOW)
    )


def remark(option: str, text: str | None) -> str:
    """What to say of an `option` whose `text`, which `parse` took, is not in the grammar above; empty if it is."""
    if text is None or not _OTHERS.fullmatch(text) or _RANGE.fullmatch(text):
        return ""
    ids = parse(text)
    right = f"[{ids[0]},{ids[-1] + 1})"
    return tr(
        'note: {option} "{text}" is read as "{right}", which is {devices}, as other tools read it',
        option=option,
        text=text,
        right=right,
        devices=named("device", ids),
    )


def _half_open(text: str, first: str, end: str) -> tuple[int, ...]:
    start, stop = (_device_id(text, number, MAX_DEVICE_ID + 1) for number in (first, end))
    if stop <= start:
        raise RangeError(
            '"{text}" names no device: the second number must be larger than the first; {how}', text=text, how=tr(_HOW)
        )
    return tuple(range(start, stop))


def _of_others(text: str, match: re.Match[str]) -> tuple[int, ...]:
    """The devices of [0-8) and [0,8].  Raises RangeError where that can also mean a device more or less.

    [0,8] is what mindformers' scripts are given for eight devices.  By [0,7] some mean seven, and some eight.
    """
    ids = _half_open(text, match[1], match[2])
    if match[3] == ")" or len(ids) in _USUAL_SIZES and len(ids) + 1 not in _USUAL_SIZES:
        return ids
    end = ids[-1] + 1
    remedy = tr(
        'write "[{first},{end})" for {fewer}, or "[{first},{more_end})" for {more}',
        first=ids[0],
        end=end,
        more_end=end + 1,
        fewer=named("device", ids),
        more=named("device", [*ids, end]),
    )
    raise RangeError('"{text}" can mean two things; {remedy}', text=text, remedy=remedy)


def _part(text: str, part: str) -> tuple[int, ...]:
    """The devices of a part of a list: a number, or 0-3, in which 3 is too.  Raises RangeError."""
    first, dash, last = part.partition("-")
    if not dash:
        return (_device_id(text, first, MAX_DEVICE_ID),)
    if "-" in last:
        raise RangeError('"{text}": {part} has two dashes; {how}', text=text, part=part.strip(), how=tr(_HOW))
    start, end = _device_id(text, first, MAX_DEVICE_ID), _device_id(text, last, MAX_DEVICE_ID)
    if end < start:
        how = tr('write "{right}"', right=f"{end}-{start}")
        raise RangeError('"{text}": {part} runs backwards; {how}', text=text, part=part.strip(), how=how)
    return tuple(range(start, end + 1))


def _device_id(text: str, number: str, largest: int) -> int:
    # The length first: int() of a long run of digits is slow, and from 4,300 digits on an error.
    if len(number.strip()) > 3 or int(number) > largest:
        raise RangeError(
            '"{text}": {number} is too large; device ids run from 0 to {largest}',
            text=text,
            number=number.strip()[:20],
            largest=MAX_DEVICE_ID,
        )
    return int(number)


def _fault(text: str) -> str:
    """The first thing that is wrong with `text`."""
    if not text.strip():
        return tr("it is empty")
    for char in text:
        if ord(char) > 127:
            return tr("'{char}' is not an ASCII character (typed with a Chinese keyboard?)", char=char)
        if char not in "[,-) 0123456789":
            return tr("'{char}' is not allowed in it", char=char)
    if re.search(r"(?<![0-9 ])-|-(?![0-9 ])", text):
        return tr("a '-' must be between two numbers")
    if re.search(r"(?<![0-9])0[0-9]", text):
        return tr("numbers have no leading zeros")
    if "[" in text and ")" not in text:
        return tr("the ')' that ends a range is missing")
    if ")" in text and "[" not in text:
        return tr("the '[' that starts a range is missing")
    if "[" in text:
        return tr("a range has two numbers with a comma between them")
    return tr("numbers are separated by single commas")
