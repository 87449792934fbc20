"""Prints the launcher's messages on stderr, each with the name of the script that the user typed."""

from __future__ import annotations

import os
import select
from collections.abc import Iterable

from hccl_tools.common import colours
from hccl_tools.common.language import tr
from hccl_tools.common.quoting import harmless


class Voice:
    """name: of the script; quiet: only what went wrong.

    before: what goes before a message: a rank may draw its progress bar on the same terminal, and a message takes the
    place of the bar.  A `colours.Styled` text has its style where stderr is a terminal, after it was made harmless.
    """

    def __init__(self, name: str) -> None:
        self.name, self.quiet, self.before = name, False, ""
        self._coloured = colours.wanted(2)
        self._note = tr("note: {note}", note="") if self._coloured else ""

    def say(self, text: str) -> None:
        """Prints one line, whatever the text contains."""
        head, style, plain = harmless(f"{self.name}: "), colours.style_of(text), harmless(text)
        if not style and self._coloured and text.startswith(self._note):
            style = colours.LABEL
        self.line(f"{self.before}{head}{colours.shown(plain, style, self._coloured)}")

    def refuse(self, text: str) -> None:
        """The same of what keeps the launch from starting."""
        self.line(self.before + colours.shown(harmless(f"{self.name}: {text}"), colours.MISTAKE, self._coloured))

    def note(self, text: str) -> None:
        """The same, unless --quiet."""
        if not self.quiet:
            self.say(text)

    def line(self, text: str) -> None:
        """A line of a table or of a log, harmless and without the name.  A closed stderr does not end the job."""
        data = os.fsencode(colours.shown(text, colours.style_of(text), self._coloured) + "\n")
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
