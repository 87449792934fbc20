"""The refusal of a config, or of something that it names."""

from __future__ import annotations

from hccl_tools.common.refusal import USAGE, Refusal


class Unusable(Refusal):
    """A config, or data or a checkpoint that it names, cannot be used."""

    def __init__(self, *lines: str) -> None:
        super().__init__(USAGE, *lines)
