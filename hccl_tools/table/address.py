"""Addresses as HCCL reads them, by inet_pton: no leading zeros, no prefix length, no zone."""

import socket


def family(address):
    """socket.AF_INET or AF_INET6 of an address that inet_pton takes, else None."""
    return {4: socket.AF_INET, 16: socket.AF_INET6}.get(len(packed(address)))


def packed(address):
    """The bytes of an address, so that two spellings of one compare equal; b"" if it is none."""
    try:
        return socket.inet_pton(socket.AF_INET, address)
    except (OSError, ValueError, UnicodeError):  # ValueError: a NUL inside
        pass
    try:
        return socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError, UnicodeError):
        return b""


def is_placeholder(text):
    """Four dotted parts of which one is a run of stars or letters (10.*.*.*, xx.xx.xx.xx, a.b.c.d, but
    not node1.a.example.com), or a description such as "Master节点IP地址"."""
    if not text.isascii():
        return True
    parts = text.split(".")
    if len(parts) != 4:
        return False
    masked = [part for part in parts if set(part) <= {"*"} or _same_letter(part)]
    return bool(masked) and ("*" in text or all(p.isdigit() or p in masked for p in parts))


def _same_letter(part):
    return part.isalpha() and len(set(part.lower())) == 1
