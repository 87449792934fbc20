"""The launcher's conversation: all messages go to stderr, each with the name of the script that the user typed."""

from __future__ import annotations

import os
import select

from hccl_tools.common.quoting import harmless

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Voice:
    """name: of the script; quiet: only what went wrong.

    before: what goes before a message: a rank may draw its progress bar on the same terminal, and a message takes the
    place of the bar.
    """

    def __init__(self, name: str) -> None:
        self.name, self.quiet, self.before = name, False, ""

    def say(self, text: str) -> None:
        """One line, whatever the text holds."""
        self.line(f"{self.before}{harmless(f'{self.name}: {text}')}")

    def note(self, text: str) -> None:
        """The same, unless --quiet."""
        if not self.quiet:
            self.say(text)

    def line(self, text: str) -> None:
        """A line of a table or of a log, without the name.  A closed stderr does not end the job."""
        data = os.fsencode(text + "\n")
        try:
            while data:
                try:
                    data = data[os.write(2, data) :]
                except BlockingIOError:  # ssh sets O_NONBLOCK on its files, for every process that shares them
                    free = select.poll()
                    free.register(2, select.POLLOUT)
                    if not free.poll(1000):
                        return  # a terminal that takes nothing must not stop the launcher
        except OSError:
            return

    def lines(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.line(text)
