"""What every check yields: one thing that is wrong, where, and how to mend it."""

from collections import namedtuple

_Fields = namedtuple("_Fields", "code pointer text remedy")


class Problem(_Fields):
    """One finding, as data; only commands print.

    code:    stable name of the rule, such as ``rank-gap``.
    pointer: JSON pointer (RFC 6901) to the place in the document; ``""`` is the document itself.
    text:    what is wrong, with the value found.
    remedy:  what to do, as one clause without a full stop.
    """

    __slots__ = ()

    def line(self, where):
        """The problem as one line; `where` is the file, with ``:LINE`` when it is known."""
        place = f"{where}: {self.pointer}" if self.pointer else where
        return f"{place}: {one_line(self.text)}; {one_line(self.remedy)} [{self.code}]"


def pointer(*keys):
    """JSON pointer to the value under `keys`: ``pointer("a", 0)`` is ``/a/0``."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in keys)


def one_line(text):
    """`text` with what would break a line made visible; other characters stay as they are."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(text))


def shown(value, limit=60):
    """`value` as JSON would write it, cut to `limit` characters for a message."""
    import json  # not at the top: only messages need it

    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # YAML has dates and sets, JSON has not
        text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."
