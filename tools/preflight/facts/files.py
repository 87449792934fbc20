"""The job's own files on this host: the program and what it imports, its config, the rank table, the data."""

from __future__ import annotations

import hashlib
import os

from hccl_tools.common.documents import refuse_special

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.preflight.difference import Value
    from tools.preflight.question import Question

DIGITS = 12  # of a digest
MOST_BYTES = 1 << 26  # of a file; a program's own files are smaller
_MOST_DIFFERENT = 20  # files that are named; the others have one digest together
_MOST_ENTRIES = 100_000  # of the folder of the data that are counted


def collect(question: Question) -> dict[str, Value]:
    """The digests of files that are not as on the asking host; None: not there.  The asker knows the others."""
    found = {path: digest(path) for path in question.files}
    different = [path for path, own in found.items() if own != question.files[path]]
    facts: dict[str, Value] = {f"file:{path}": found[path] for path in different[:_MOST_DIFFERENT]}
    facts["more_files"] = None
    if different[_MOST_DIFFERENT:]:
        rest = "".join(f"{path}\0{found[path]}\0" for path in different[_MOST_DIFFERENT:])
        facts["more_files"] = hashlib.sha256(os.fsencode(rest)).hexdigest()[:DIGITS]
    if question.table:
        facts["table_file"] = digest(question.table[0])
    return facts


def collect_data(question: Question) -> dict[str, Value]:
    """Whether the data is there, and as much as on other hosts, as far as that is known at once."""
    if not question.data:
        return {}
    facts: dict[str, Value] = {"data": os.access(question.data, os.R_OK)}
    if os.path.isdir(question.data):
        names = 0
        with os.scandir(question.data) as entries:
            for entry in entries:
                names += not entry.name.startswith(".")
                if names == _MOST_ENTRIES:
                    break
        facts["data_entries"] = names
    elif facts["data"]:
        facts["data_bytes"] = os.path.getsize(question.data)
    return facts


def digest(path: str) -> str | None:
    """The beginning of the file's SHA-256, as sha256sum prints it; None where there is no file, or none to read."""
    found = hashlib.sha256()
    try:
        refuse_special(path)
        with open(path, "rb") as file:
            left = MOST_BYTES
            while left > 0 and (block := file.read(min(left, 1 << 20))):
                found.update(block)
                left -= len(block)
    except OSError:
        return None
    return found.hexdigest()[:DIGITS]
