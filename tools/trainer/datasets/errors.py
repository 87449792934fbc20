"""What a data set says that cannot be used."""


class DataError(Exception):
    """The data cannot be used: the text names the file, what was expected, and what to do."""
