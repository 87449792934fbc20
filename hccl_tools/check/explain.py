"""What each code means: for ``validate_hccl.py --explain CODE`` and docs/rank_table_checks.md.

A rule's docstring is its documentation; here stand only the codes that come from elsewhere.

  python -m hccl_tools.check.explain > docs/rank_table_checks.md
"""

import re
import sys

from hccl_tools.check import rules
from hccl_tools.common.problem import ERROR, WARNING
from hccl_tools.table import formats

_HEAD = """\
# What is checked in a rank table

Made by `python -m hccl_tools.check.explain`; the text is that of the rules in `hccl_tools/check/rules/`. The
same, shorter, in [Chinese](zh/rank_table_checks.md).

A table with an error is bad, one with warnings only is good. `validate_hccl.py --explain CODE` prints the part of this
page about one code.
"""

# code, severity, what is wrong, why it matters, how to mend it
_ELSEWHERE = (
    (
        "not-json",
        ERROR,
        "The file is not JSON: comments, a comma before a bracket, a byte-order mark, NaN, single quotes, "
        "bytes that are not UTF-8, or more levels than any table has.",
        "HCCL's parser refuses it (EI0004); the samples of HCCL's manual carry comments that have to be deleted.",
        "change what stands at the line and column that the message names.",
    ),
    (
        "duplicate-key",
        ERROR,
        "An object has one key twice.",
        "JSON parsers disagree on which of the two counts, so Python and HCCL may read two different tables.",
        "keep one of them.",
    ),
    (
        "unsupported-format",
        ERROR,
        "The file is a MindIE global rank table or an llm-datadist table.",
        "they look like a rank table and HCCL cannot read them.",
        "give the file to the program that it is for; build a rank table with hccl_tools/hccl_tools.py.",
    ),
    (
        "bad-version",
        ERROR,
        "version is none of 1.0, 1.1, 1.2 and 2.0.",
        "HCCL chooses its parser by it (CfgGetClusterInfo in config.cc).",
        "write the version that the rest of the table looks like.",
    ),
    (
        "missing-field",
        ERROR,
        "A field that the format needs is missing.",
        "HCCL's parsers and manual (EI0017); see the format's schema in schemas/.",
        "add the field.",
    ),
    (
        "wrong-type",
        ERROR,
        "A value is of the wrong type, such as a number where a text must be.",
        "in 1.x every scalar is a text; HCCL says: json object property value of Name[device_id] is not string!",
        "put it in quotes; in 2.0 write numbers without quotes.",
    ),
    (
        "bad-value",
        ERROR,
        "A value is of the right type and not one that the format knows: too long, too large, or no number.",
        'HCCL\'s parsers; where HCCL is lax ("3abc" is 3 for it) this is stricter on purpose.',
        "write what the message asks for.",
    ),
    (
        "bad-path",
        WARNING,
        'The path of the file has not exactly one ".json", at its end, or 4,096 bytes or more.',
        "HCCL looks for the first .json of the real path and takes no table where it is not the end.",
        "give the table such a name before the launch.",
    ),
    (
        "host-server",
        ERROR,
        "--against-host: no server of the table is this host.",
        "HCCL finds its own entry by the rank, and then the devices' addresses do not fit.",
        "build this host's table with hccl_tools/hccl_tools.py, or run the check on the host that is meant.",
    ),
    (
        "host-address",
        ERROR,
        "--against-host: a device's address is not the one in the table, or cannot be asked for.",
        "HCCL, EI0014: the IP address in the ranktable is inconsistent with that of the network adapter.",
        "build the table anew, or set the address with hccn_tool.",
    ),
    (
        "host-rank",
        ERROR,
        "--against-host: RANK_ID, RANK_SIZE or DEVICE_ID of the environment does not fit the table.",
        "HCCL: ranktable config devId[1], but local devId[3].",
        "set the variables as the table says; the launcher does.",
    ),
)

_PART = re.compile(r"\A(?P<what>.*?)\n\s*Why: (?P<why>.*?)\n\s*Mend: (?P<mend>.*?)\s*\Z", re.DOTALL)


def entries():
    """{code: [(severity, where it holds, what, why, mend)]}, sorted by code."""
    found = {}
    for code, severity, *parts in _ELSEWHERE:
        found.setdefault(code, []).append((severity, "", *parts))
    for rule in rules.all_rules():
        found.setdefault(rule.code, []).append((rule.severity, _where(rule), *parts_of(rule)))
    return dict(sorted(found.items()))


def parts_of(rule):
    """(what, why, mend) of a rule's docstring."""
    match = _PART.match(rule.__doc__)
    return tuple(" ".join(match[name].split()) for name in ("what", "why", "mend"))


def text(code):
    """What there is to say about one code, or None if there is no such code."""
    found = entries().get(code)
    return found and _section(code, found).replace("## ", "", 1).replace("`", "")


def page():
    """The whole of docs/rank_table_checks.md."""
    return "\n".join([_HEAD, *(_section(code, found) for code, found in entries().items())])


def _section(code, found):
    lines = [f"## `{code}`", ""]
    for severity, where, what, why, mend in found:
        kind = f"{severity}; {where}" if where else severity
        lines += [f"- {what} ({kind})", f"  - Why: {why}", f"  - Remedy: {mend}"]
    return "\n".join(lines) + "\n"


def _where(rule):
    names = [name.replace("v", "", 1) if name.startswith("v") else name.replace("_", " ") for name in rule.formats]
    where = "every format" if len(names) == len(formats.FORMATS) else ", ".join(names)
    return f"{where}; {' and '.join(rule.generations)} only" if rule.generations else where


if __name__ == "__main__":
    sys.stdout.write(page())
