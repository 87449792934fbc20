"""What counts as a whole number in text from a person, a file or the environment."""

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
