"""Parses whole numbers in text from a person, a file or the environment."""

from __future__ import annotations

DIGITS = 10  # more than any count, id, port or number of seconds here needs


def whole_number(text: str, least: int = 0, most: int = 10**DIGITS - 1) -> int | None:
    """The number that `text` is, in ASCII digits without a sign; None if it is not one from `least` to `most`."""
    if not (text.isascii() and text.isdigit()):
        return None
    digits = text if len(text) <= DIGITS else text.lstrip("0")
    if len(digits) > DIGITS:  # not given to int(), which is slow for very many digits
        return None
    number = int(digits or "0")
    return number if least <= number <= most else None


_UNITS = {"d": 24 * 60 * 60, "h": 60 * 60, "m": 60, "s": 1}


def seconds(text: str, least: int = 0, most: int = 10**DIGITS - 1) -> int | None:
    """The time that `text` is, in seconds: a whole number of them, or 90s, 10m, 2h, 1h30m, 1d.

    Each unit comes once, the largest first.  None if it is not a time, or not one from `least` to `most`.
    """
    if text.isascii() and text.isdigit():
        return whole_number(text, least, most)
    total, digits, units = 0, "", "dhms"
    for letter in text.lower():
        if letter.isascii() and letter.isdigit():
            digits += letter
            continue
        number = whole_number(digits)
        if number is None or letter not in units:
            return None
        total += number * _UNITS[letter]
        digits, units = "", units.partition(letter)[2]
    return total if text and not digits and least <= total <= most else None
