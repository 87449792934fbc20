"""Suggests the address that a person may have meant by 10.9.0.256, 10,9,0,1 or 10.9.0.1/24."""

from __future__ import annotations

import re

from hccl_tools.table.address import family

_LETTERS = str.maketrans("OoIl|", "00111")  # what is typed for a digit
_COMMAS = str.maketrans(",;。、·", ".....")  # and for a dot
_SIGNS = frozenset(".,;:/%@ ")  # an address, or what is nearly one, has one of them
_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]*){1,7}")  # too few or too many, or one too large
_MOST_PART = 5  # characters of a part with something else than digits in it, next to three numbers


def is_nearly_an_address(text: str) -> bool:
    """Whether `text` looks like an address but is not one, whether or not its meaning is clear."""
    if _is_plain_name(text) or family(text) is not None or not any(c.isdigit() for c in text):
        return False
    cleaned = _cleaned(text)
    parts = cleaned.split(".")
    numbers = [part for part in parts if _is_number(part)]
    three_of_four = len(parts) == 4 and len(numbers) == 3 and not any(map(_is_of_a_name, parts))
    return three_of_four or is_of_numbers(text)


def is_of_numbers(text: str) -> bool:
    """Whether a resolver could take `text` for an address although it has another form: it reads 10.9.0 as 10.9.0.0."""
    if _is_plain_name(text) or family(text) is not None:
        return False
    return _NUMBERS.fullmatch(_cleaned(text)) is not None or meant(text) is not None


def meant(text: str) -> str | None:
    """The only address that a misspelt one can mean; None if there is none, or if `text` is not a misspelt address."""
    if _is_plain_name(text):
        return None
    cleaned = _cleaned(text)
    host, _, port = cleaned.rpartition(":")
    forms = [cleaned, cleaned.strip("[]")]
    if _is_number(port or "0") and (host.count(":") == 0 or host.startswith("[")):
        forms.append(host.strip("[]"))
    for form in forms:
        found = _without_zeros(re.sub(r"\.{2,}", ".", form.strip(".")))
        if found != text and family(found) is not None:
            return found
    return None


def _is_plain_name(text: str) -> bool:
    """Whether it has nothing of an address, as node_0: a table may have ten thousand of them."""
    return text.isascii() and _SIGNS.isdisjoint(text)


def _cleaned(text: str) -> str:
    """The text without blanks, a scheme, a user, a netmask and a zone, in ASCII digits and dots where it can be."""
    import unicodedata  # 1 ms that a table with addresses or names need not spend

    words = unicodedata.normalize("NFKC", text).split()
    text = ("." if len(words) == 4 and all(map(_is_number, words)) else "").join(words)
    text = re.sub(r"^[a-z]+://|^[^@]*@", "", text)
    text = re.split(r"[/%]", text)[0].translate(_COMMAS)
    digits = text.translate(_LETTERS)
    return digits if ":" not in text and set(digits) <= set("0123456789.") else text


def _without_zeros(text: str) -> str:
    """An IPv4 address without leading zeros, which inet_pton refuses and inet_aton takes for octal."""
    parts = text.split(".")
    return ".".join(str(int(part)) for part in parts) if all(_is_number(part, 3) for part in parts) else text


def _is_of_a_name(part: str) -> bool:
    """Whether a part between dots cannot be a mistyped number or a placeholder, as rack1 in rack1.0.0.1."""
    begins = part[:2].isalpha() and len(part) > 1 and set(part.lower()) != {"x"}
    return begins or not 0 < len(part) <= _MOST_PART


def _is_number(part: str, most: int = 5) -> bool:
    return part.isascii() and part.isdigit() and len(part) <= most
