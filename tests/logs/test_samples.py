"""In a log each sample of a rule is taken by this rule, and by no wider one before it, whatever is before the line."""

import io
import re

import pytest
from known import ENTRIES
from suite.cases import for_each, none

from tools.logs import owners, plog, scan

NAMES = {"plog": "plog-1_2.log", "device": "device-1_2.log", "host": "messages", "train": "a.log"}
HEAD = "[ERROR] HCCL(7,python3):2025-01-24-11:31:40.000.000 [a.cc:1]"
BEFORE = {
    "train": ("", "    ", "[1,0]<stderr>:", "[rank0]: ", "10:11:12 "),
    "plog": ("", HEAD),
    "device": ("",),
    "host": ("", "Jan  1 10:00:00 node1 kernel: "),
}
SAMPLES = [(entry, kind) for entry in ENTRIES for kind in entry.logs if entry.samples]


def taken(line, kind):
    """The code of the rule that takes the line in a log of this kind."""
    log = f"step 1\n{line}\nstep 2\n".encode()
    for found in scan.read_all(io.BytesIO(log), NAMES[kind], False):
        for hit in found.hits:
            return ENTRIES[hit.entry].code
    return None


def begins_line(entry):
    """Whether an expression holds only for the beginning of a line, where a plog has its head."""
    return any(source.startswith("^") for source in entry.sources)


@pytest.mark.slow
@for_each("entry, kind", SAMPLES, ids=lambda case: f"{case[0].code} in a log of the kind {case[1]}")
def test_a_sample_in_a_log_is_taken_by_its_own_entry(entry, kind):
    scan.use(ENTRIES)
    for sample in entry.samples:
        if "\n" in sample or (plog.parse(sample) and plog.parse(sample).level in plog.QUIET):
            continue
        for before in BEFORE[kind]:
            if before == HEAD and (plog.parse(sample) or begins_line(entry)):
                continue
            code = taken(before + sample, kind)
            other = next((one for one in ENTRIES if one.code == code), None)
            # Entries for other device targets come first where the target is not known.
            if other is not entry and other is not None and set(other.targets) != set(entry.targets):
                continue
            assert code == entry.code, (before, sample)


def begins_before(entry):
    """The samples in whose line a match begins with the end of the line before: its number would be that line's."""
    for source in entry.sources:
        for sample in entry.samples:
            found = re.search(source, f"step 1\n{sample}", re.MULTILINE)
            if found and found[0].startswith("\n"):
                yield f"{entry.code}: {source} takes the line break before {sample}"


def test_no_rule_takes_the_line_break_before_its_line():
    none(text for entry in ENTRIES for text in begins_before(entry))


def test_kinds_of_logs_are_all_tried():
    assert set(BEFORE) == set(NAMES) == set(owners.KINDS)
