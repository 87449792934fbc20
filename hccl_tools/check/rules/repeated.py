"""The one way to look for what may stand only once."""

from hccl_tools.common.words import shown


def repeated(values, place, what, remedy, texts=None):
    """What a rule yields for each value that stood before in the list `values`; None does not count.

    place(i) gives the pointer of values[i].  texts, if given, are what to show in place of values.
    """
    if len(set(values)) == len(values):  # the usual case, at the speed of C
        return
    first = {}
    for index, value in enumerate(values):
        if value is None:
            continue
        earlier = first.setdefault(value, index)
        if earlier != index:
            seen = (texts or values)[index]
            yield place(index), f"{what} {shown(seen)} stands at {place(earlier)} too", remedy
