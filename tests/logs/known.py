"""The table of known failures, as the tests of this folder share it: a worker reads it, and compiles it, once."""

import functools

from tools.logs import known_failures

ENTRIES, COMPLAINTS = known_failures.load({})


@functools.cache
def of_launches():
    """The entries of configs/diagnoses.yaml: YAML takes a second."""
    return known_failures.load_file(known_failures.FILE)[0]
