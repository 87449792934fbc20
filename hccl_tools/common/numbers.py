"""What counts as a whole number in text that a person, a file or the environment gave us."""

from __future__ import annotations

DIGITS = 9  # more than any count, id, port or number of seconds here needs


def whole_number(text: str, least: int = 0, most: int = 10**DIGITS - 1) -> int | None:
    """The number that `text` is, in ASCII digits without a sign; None where it is no number from `least` to `most`."""
    digits = text.lstrip("0") or text[:1]
    if not (digits.isascii() and digits.isdigit() and len(digits) <= DIGITS):
        return None
    number = int(digits)
    return number if least <= number <= most else None
