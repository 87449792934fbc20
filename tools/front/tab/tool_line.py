"""TAB in the command line of a tool, such as ``mslaunch watch`` or ``python tools/watch.py``."""

from __future__ import annotations

from tools.front.tab import names, offer, values

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.front.tab.offer import Offer
    from tools.front.tab.options import Known


def find(known: Sequence[Known], words: Sequence[str], begun: str) -> Offer:
    """What may follow the words of a tool that takes what is `known`."""
    takes = {name: values.BY_NAME.get(name.lstrip("-"), each.takes) for each in known for name in each.names}
    arguments = [each.takes for each in known if not each.names]
    given, waits = 0, ""
    for word in words:
        if waits:
            waits = ""
        elif word.startswith("-") and word != "-":
            waits = "" if "=" in word else takes.get(names.plain(word), "")
        else:
            given += 1
    if waits:
        return values.of(waits, begun)
    if begun.startswith("--") and "=" in begun:
        return names.value(begun, takes.get(names.plain(begun), ""))
    if begun.startswith("-"):
        return names.offered([*takes, "--help"], begun)
    if given < len(arguments):
        return values.of(arguments[given], begun)
    # the last one may be repeated; a choice may not
    return values.of(arguments[-1], begun) if arguments and not values.choices(arguments[-1]) else offer.Offer()
