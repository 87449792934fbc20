"""Measures the processor time of the tests, which does not depend on the machine's other work.

The time of a test and of all processes that it has waited for counts.  The time of processes that others wait for,
such as a daemon of Slurm, does not.
"""

import os
from collections import Counter

NAME = "processor"  # of the property in a test's last report
_of_files = Counter()  # seconds of each file


def used():
    """Seconds of this process and of the children that it has waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def add(report):
    """Counts a report for its file, if it is a test's last."""
    for name, seconds in report.user_properties if report.when == "teardown" else ():
        if name == NAME:
            _of_files[report.nodeid.partition("::")[0]] += seconds


def lines(most):
    """The total, and the files with the highest times.  most: how many files are listed; 0: all; None: none."""
    whole = sum(_of_files.values())
    if whole:
        yield f"processor time of the tests: {whole:,.0f} s"
        for path, seconds in [] if most is None else _of_files.most_common(most or None):
            yield f"{seconds:8.1f} s  {seconds / whole:5.1%}  {path}"
