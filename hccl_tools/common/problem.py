"""What every check yields: one thing that is wrong, where, and how to mend it."""

from collections import namedtuple

ERROR, WARNING = "error", "warning"

_Fields = namedtuple("_Fields", "code pointer text remedy severity row column", defaults=(ERROR, None, None))


class Problem(_Fields):
    """One finding, as data; only commands print.

    code:     stable name of the rule, such as ``rank-gap``.
    pointer:  JSON pointer (RFC 6901) to the place in the document; ``""`` is the document itself.
    text:     what is wrong, with the value found.
    remedy:   what to do, as one clause without a full stop.
    severity: ERROR, or WARNING: a table with nothing but warnings is good.
    row, column: the place in the file, from 1, where they are known.
    """

    __slots__ = ()

    def line(self, where):
        """The problem as one line; `where` is the file.  Without a pointer the text itself names the place."""
        row = "" if self.row is None else f":{self.row}"
        place = f"{where}{row}: {self.pointer}" if self.pointer else where
        # A pointer holds keys of the document, so it needs one_line as much as the text does.
        kind = "warning: " if self.severity == WARNING else ""
        return f"{one_line(place)}: {kind}{one_line(self.text)}; {one_line(self.remedy)} [{self.code}]"


def errors(problems):
    """Those of the `problems` that make a table bad."""
    return [problem for problem in problems if problem.severity == ERROR]


def pointer(*keys):
    """JSON pointer to the value under `keys`: ``pointer("a", 0)`` is ``/a/0``."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def one_line(text):
    """`text` with what would break a line made visible; other characters stay as they are."""
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def shown(value, limit=60):
    """`value` as JSON would write it, cut to `limit` characters for a message."""
    import json  # not at the top: only messages need it

    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # YAML has dates and sets, JSON has not
        text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
