"""What a fault allows: exit codes and claims beyond those of an undisturbed launch."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Allowed:
    """What may happen because of a fault, or of several."""

    codes: set[int] = field(default_factory=set)
    claims: set[str] = field(default_factory=set)  # names in verdicts.CLAIMS
    silent: str = ""  # why there may be no report
    leftovers: str = ""  # why processes may be left

    def add(self, other: Allowed) -> None:
        """Allows what the other allows, too."""
        self.codes |= other.codes
        self.claims |= other.claims
        self.silent = self.silent or other.silent
        self.leftovers = self.leftovers or other.leftovers
