"""Where in the text of a JSON document something stands; asked only when there is something to explain.

The text is known to be JSON.  What is of no interest is skipped at the speed of the json module.
"""

import json
import re

_BLANK = re.compile(r"[ \t\n\r]*").match


def placed(problems, data):
    """The `problems` with row and column; a place that is not there gets those of what it would be in."""
    text = data.decode("utf-8")
    wanted = {}
    for problem in problems:
        branch = wanted
        for key in problem.pointer.split("/")[1:]:
            branch = branch.setdefault(key.replace("~1", "/").replace("~0", "~"), {})
    offsets = {}
    _search(text, _BLANK(text).end(), wanted, "", offsets)
    rows = _rows(text, set(offsets.values()))
    return [_with_place(problem, offsets, rows) for problem in problems]


def _with_place(problem, offsets, rows):
    place = problem.pointer
    while place and place not in offsets:
        place = place.rpartition("/")[0]
    if place == "":
        return problem  # the whole document: line 1 says nothing
    row, column = rows[offsets[place]]
    return problem._replace(row=row, column=column)


def _search(text, start, wanted, base, offsets):
    """Notes in `offsets` where the values stand that the tree `wanted` names, below the value at `start`."""
    scan = json.JSONDecoder().scan_once
    tasks = [(start, wanted, base)]
    while tasks:
        start, branch, base = tasks.pop()
        offsets[base] = start
        inside = {}
        if branch:
            for key, _, at in members(text, start, scan):
                if key in branch:
                    inside[key] = at  # of a key that stands twice the last one counts, as for Python
        for key, at in inside.items():
            tasks.append((at, branch[key], base + "/" + key.replace("~", "~0").replace("/", "~1")))


def members(text, start, scan):
    """(key, offset of the key, offset of the value) of each member of the container at `start`.

    scan(text, offset) skips a value.  Entries of a list have their number, as text, for a key.
    """
    kind = text[start]
    at = _BLANK(text, start + 1).end()
    count = 0
    while kind in "{[" and text[at] not in "}]":
        key, key_at = str(count), at
        if kind == "{":
            key, at = scan(text, at)
            at = _BLANK(text, _BLANK(text, at).end() + 1).end()
        yield key, key_at, at
        _, at = scan(text, at)
        at = _BLANK(text, at).end()
        if text[at] == ",":
            at = _BLANK(text, at + 1).end()
        count += 1


def repeated_keys(text):
    """(offset, key, offset of the same key before) of every key that its object has already."""
    seen_twice = []

    def note(pairs):
        if len(dict(pairs)) < len(pairs):
            seen_twice.append(True)

    scan = json.JSONDecoder(object_pairs_hook=note).scan_once
    tasks = [_BLANK(text).end()]
    found = []
    while tasks:
        first = {}
        for key, key_at, at in members(text, tasks.pop(), scan):
            if key in first:  # the number of an entry of a list never is
                found.append((key_at, key, first[key]))
            first.setdefault(key, key_at)
            del seen_twice[:]
            scan(text, at)
            if seen_twice:
                tasks.append(at)
    return sorted(found)


def row_and_column(text, offset):
    """(row, column) of an offset, from 1."""
    return _rows(text, {offset})[offset]


def _rows(text, offsets):
    """{offset: (row, column)}; one pass over the text for all of them."""
    found, row, before = {}, 1, 0
    for offset in sorted(offsets):
        row += text.count("\n", before, offset)
        before = offset
        found[offset] = row, offset - text.rfind("\n", 0, offset)
    return found
