"""Explains each problem code, for ``validate_hccl.py --explain CODE`` and docs/rank_table_checks.md.

A rule's docstring is its documentation. This file has only the codes from other sources.

  python -m hccl_tools.check.explain > docs/rank_table_checks.md
"""

from __future__ import annotations

import sys

from hccl_tools.check import rules
from hccl_tools.check.rules.registry import Rule
from hccl_tools.common.problem import ERROR, WARNING
from hccl_tools.common.record import Row
from hccl_tools.common.words import clauses
from hccl_tools.table import formats

_HEAD = """\
# What is checked in a rank table

`python -m hccl_tools.check.explain` makes this page from the rules in `hccl_tools/check/rules/`. A shorter page is in
[Chinese](zh/rank_table_checks.md).

A table with an error is bad. A table with only warnings is good. `validate_hccl.py --explain CODE` prints the part of
this page about one code.
"""


class Entry(Row):
    """One meaning of a code: its severity, what is wrong, why that matters, what to do, and for which tables."""

    severity: str
    what: str
    why: str
    remedy: str
    where: str = ""


_ELSEWHERE = {
    "not-json": Entry(
        ERROR,
        "The file is not JSON. Examples: comments, a comma before a bracket, a byte-order mark, NaN, single quotes. "
        "Bytes that are not UTF-8, or too many levels, also count. The message names common mistakes. Examples: "
        "compressed files, YAML, hostfiles, hccn.conf, error pages, the output of npu-smi.",
        "HCCL's parser refuses it (EI0004); the samples of HCCL's manual have comments that you must delete.",
        "change the text at the line and column that the message names.",
    ),
    "duplicate-key": Entry(
        ERROR,
        "An object has the same key twice.",
        "JSON parsers differ in which of the two they use: Python and HCCL may read two different tables.",
        "keep one of them.",
    ),
    "unsupported-format": Entry(
        ERROR,
        "The file is JSON of another kind. Examples: a MindIE global rank table, an llm-datadist table, Volcano's "
        "ranktable_tor.json. Also hccl_rootinfo.json and the topology of an Atlas 950 host, a Kubernetes object, a "
        "config, or a file with a table inside.",
        "they look like a rank table, or are in the same folder, but HCCL cannot read them.",
        "give the file to the program that it is for; build a rank table with hccl_tools/hccl_tools.py.",
    ),
    "bad-version": Entry(
        ERROR,
        "version is not 1.0, 1.1, 1.2 or 2.0, or the table has the list of another version.",
        "HCCL chooses its parser by the version (CfgGetClusterInfo in config.cc).",
        "write the version that matches the rest of the table.",
    ),
    "missing-field": Entry(
        ERROR,
        "A field that the format requires is missing.",
        "HCCL's parsers and manual (EI0017); see the format's schema in schemas/.",
        "add the field.",
    ),
    "wrong-type": Entry(
        ERROR,
        "A value is of the wrong type, such as a number instead of a text.",
        "in 1.x every scalar is a text; HCCL prints: json object property value of Name[device_id] is not string!",
        "put it in quotes; in 2.0 write numbers without quotes.",
    ),
    "bad-value": Entry(
        ERROR,
        "A value is of the right type but is not allowed: too long, too large, or not a number.",
        'HCCL\'s parsers. HCCL accepts some wrong values ("3abc" as 3); this check refuses them on purpose.',
        "write what the message asks for.",
    ),
    "bad-path": Entry(
        WARNING,
        'The path of the file does not have exactly one ".json", at its end, or it has 4,096 bytes or more.',
        "HCCL looks for the first .json in the real path. If it is not at the end, HCCL does not read the table.",
        "give the table such a name before the launch.",
    ),
    "host-server": Entry(
        ERROR,
        "--against_host: none of the table's servers is this host.",
        "HCCL finds its own entry by the rank, and then the devices' addresses do not match.",
        "build this host's table with hccl_tools/hccl_tools.py, or run the check on the right host.",
    ),
    "host-address": Entry(
        ERROR,
        "--against_host: a device's address differs from the one in the table, or no program reports it.",
        "HCCL, EI0014: the IP address in the ranktable is inconsistent with that of the network adapter.",
        "build the table again, or set the address with hccn_tool.",
    ),
    "host-rank": Entry(
        ERROR,
        "--against_host: RANK_ID, RANK_SIZE or DEVICE_ID in the environment does not match the table.",
        "HCCL: ranktable config devId[1], but local devId[3].",
        "set the variables to the values of the table; the launcher does this.",
    ),
}


def entries() -> dict[str, list[Entry]]:
    """The meanings of every code, sorted by code."""
    found = {code: [entry] for code, entry in _ELSEWHERE.items()}
    for rule in rules.all_rules():
        found.setdefault(rule.code, []).append(Entry(rule.severity, *rule.words(), _where(rule)))
    return dict(sorted(found.items()))


def text(code: str) -> str | None:
    """The explanation of one code, or None if there is no such code."""
    found = entries().get(code)
    return _section(code, found).replace("## ", "", 1).replace("`", "") if found else None


def page() -> str:
    """The whole of docs/rank_table_checks.md."""
    return "\n".join([_HEAD, *(_section(code, found) for code, found in entries().items())])


def _section(code: str, found: list[Entry]) -> str:
    lines = [f"## `{code}`", ""]
    for entry in found:
        kind = clauses(entry.severity, entry.where) if entry.where else entry.severity
        lines += [f"- {entry.what} ({kind})", f"  - Why: {entry.why}", f"  - Remedy: {entry.remedy}"]
    return "\n".join(lines) + "\n"


def _where(rule: Rule) -> str:
    names = [name.replace("v", "", 1) if name.startswith("v") else name.replace("_", " ") for name in rule.formats]
    where = "every format" if len(names) == len(formats.FORMATS) else ", ".join(names)
    only = f"; {' and '.join(rule.generations)} only" if rule.generations else ""
    strict = f"; on {' and '.join(rule.strict)} an error" if rule.strict else ""
    return where + only + strict


if __name__ == "__main__":
    sys.stdout.write(page())
