"""The refusal of a data set."""

from __future__ import annotations

from tools.config.unusable import Unusable


class DataError(Unusable):
    """The data cannot be used: the text names the file, what was expected, and what to do."""


class NoData(DataError):
    """The folder has none of these data, not even a part."""
