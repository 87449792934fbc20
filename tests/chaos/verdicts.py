"""What is allowed after a round: exit code, messages, report."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass, field

from tests.chaos.allowed import Allowed
from tests.chaos.launches import Launch

# What a message claims, and the fault without which the claim is wrong.  An empty name: it is always wrong.
NOTICE = r"line \d+: +\d+ (?:Killed|Terminated|Hangup|Aborted|Stopped)"  # bash about a child of its own
CLAIMS = [
    ("disk", r"disk full|no space left|No space left|File too large"),
    ("processes", r"too many processes|cannot start more processes"),
    ("plan", r"the plan's process could not be started"),
    ("folder", r"the log folder .* is gone"),
    ("lost", r"the host .* is lost"),
    ("twice", r" in use by "),
    ("timeout", r"its --timeout"),
    ("hang", r"the --hang_timeout: "),
    ("", r"waits in the kernel|wait in the kernel"),
    ("", r"failed inside|internal error|[Pp]lease report"),
    ("", r"Traceback \(most recent|Error: \[Errno|Exception"),
    ("notice", NOTICE),
    ("", rf"(?!.*{NOTICE})line \d+: |unbound variable|command not found|syntax error|bad substitution"),
    ("", r"Bad file descriptor|integer expression|ambiguous redirect|value too great|read-only variable"),
]
FORK = r"fork: |Resource temporarily unavailable"


@dataclass
class Ended:
    """How a launch ended."""

    code: int | None  # None: it did not end in time
    stdout: str = ""
    stderr: str = ""
    left: list[str] = field(default_factory=list)  # processes
    held: list[str] = field(default_factory=list)  # locks
    ranks_ran: bool = False
    disturbed: bool = False  # a fault hit it


def judge(launch: Launch, allowed: Allowed, ended: Ended) -> list[str]:
    """What is wrong; nothing if everything is as it should be."""
    problems = list(_leftovers(allowed, ended))
    codes = launch.codes(ended.disturbed) | allowed.codes
    if ended.code is None:
        problems.append("it hangs")
    elif ended.code not in codes:
        problems.append(f"exit code {ended.code} is none of {sorted(codes)}")
    if launch.stderr in ("pipe", "file", "pty"):
        problems += _claims(launch, allowed, ended.stderr)
        if launch.script != "run_mpirun.sh":
            problems += _codes_of_ranks(launch, allowed, ended.stderr)
        if not allowed.silent and ended.code is not None:
            problems += _report(launch, ended)
    return problems


def _leftovers(allowed: Allowed, ended: Ended) -> list[str]:
    if allowed.leftovers:
        return []
    return [f"left running: {line}" for line in ended.left] + [f"a lock is still held: {path}" for path in ended.held]


def _messages(stderr: str) -> list[str]:
    """The lines, plain: not the ends of logs, which are indented, nor what bash says about a locale."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", stderr)
    return [line[:1000] for line in plain.split("\n") if not line.startswith("    ") and "setlocale" not in line]


def _claims(launch: Launch, allowed: Allowed, stderr: str) -> list[str]:
    lines, problems = _messages(stderr), []
    granted = allowed.claims | set(launch.limits)
    for name, pattern in CLAIMS:
        found = [line for line in lines if re.search(pattern, line)]
        if "fork" in granted:
            found = [line for line in found if not re.search(FORK, line)]
        if found and (not name or name not in granted):
            problems.append(f"a message claims what is not so ({name or 'ever'}): {found[0][:300]}")
    own = re.findall(r"(?m)^\S+: (SIG\w+): (?:stopping|the ranks)", "\n".join(lines))
    problems += [f"a message claims that {name} came to the launcher" for name in own if name not in granted]
    return problems


def _codes_of_ranks(launch: Launch, allowed: Allowed, stderr: str) -> list[str]:
    """The codes in the report are such as the ranks may have."""
    natural: set[int] = set()
    for rank in launch.ranks:
        natural |= {code for code in (rank.code, rank.code_again) if code is not None}
    possible = natural | allowed.codes | {137}
    possible |= {128 + _number(name) for name in allowed.claims if name.startswith("SIG")}
    problems = []
    for line in _messages(stderr):
        # A row of the table of attempts has other numbers.
        row = re.match(r"(\d+) +\d+ +(\d+)( SIG\w+)?(, stopped by us)?(?![\d ]*  (?:no|\d+ of \d+) )", line)
        if row and not row[4] and int(row[2]) not in possible:
            problems.append(f"a rank cannot have ended so: {line}")
        first = re.search(r"rank \d+ \(device \d+\) (?:was ended by SIG(\w+)|exited with code (\d+))", line)
        if first and (int(first[2]) if first[2] else 128 + _number("SIG" + first[1])) not in possible:
            problems.append(f"a rank cannot have failed so: {line}")
    return problems


def _number(name: str) -> int:
    return int(getattr(signal, name))


def _report(launch: Launch, ended: Ended) -> list[str]:
    """A table and "exit N" if ranks ran, else a line that says why not."""
    text = "\n".join(_messages(ended.stderr))
    if launch.quiet and ended.code == 0:
        return []
    if not ended.ranks_ran:
        before = ended.code in (129, 130, 143)  # a signal ended the launcher before it had anything to stop
        return [] if launch.script + ": " in text or before else ["no word about why no rank ran"]
    problems = []
    between = launch.restarts and ended.code in (124, 129, 130, 143)  # two attempts: no rank runs, none is reported
    if not launch.quiet and not between and not re.search(r"(?m)^rank +device ", text):
        problems.append("no table of the ranks")
    if not re.search(rf"(?m)^{re.escape(launch.script)}: exit {ended.code}(?:; logs .*)?$", text):
        problems.append(f'no line "exit {ended.code}"')
    return problems
