"""How often the processes of a command turn to files, as strace(1) counts their system calls.

strace of 5.3 or later stops a process only at the calls that are counted.
"""

import dataclasses
import os
import re
import shlex
import shutil
import subprocess

_OPEN = "open openat openat2"
_LOOK = "stat lstat newfstatat statx access faccessat faccessat2 readlink readlinkat"
_READ = "read pread64"
# The log goes to awk, because a launch of 8 ranks has 100,000 of these calls.  A call that another process interrupts
# has two lines: the path is in the first one, the result in the second.
_COUNT = r"""
function ended() {
  if (kind == "open" && /= -1 ENOENT/) number["none"]++
  if (kind == "read" && $(NF - 1) == "=" && $NF ~ /^[0-9]+$/) bytes += $NF
}
$2 == "<..." {
  if ($1 in waiting) { kind = waiting[$1]; delete waiting[$1]; ended() }
  next
}
index($0, below) {
  call = $2; sub(/\(.*/, "", call)
  kind = kinds[call]
  number[kind]++
  if (/<unfinished \.\.\.>$/) waiting[$1] = kind; else ended()
}
BEGIN {
  split(opens, names, " "); for (each in names) kinds[names[each]] = "open"
  split(looks, names, " "); for (each in names) kinds[names[each]] = "look"
  split(reads, names, " "); for (each in names) kinds[names[each]] = "read"
}
END { printf "%d %d %d %d %d\n", number["open"], number["none"], number["look"], number["read"], bytes }
"""


@dataclasses.dataclass(frozen=True)
class Calls:
    """System calls of all processes of a command.

    opened: of open(2), with those that find no file; missed: these.  looked: of stat(2) and its like.  bytes: that
    read(2) has given; what a process maps, such as a library, is not in them.
    """

    opened: int
    missed: int
    looked: int
    read: int
    bytes: int

    def __add__(self, other):
        return Calls(*(mine + its for mine, its in zip(dataclasses.astuple(self), dataclasses.astuple(other))))


def why_not():
    """Why nothing can be counted here; empty: it can."""
    missing = [name for name in ("strace", "awk") if not shutil.which(name)]
    if missing:
        return f"no {missing[0]} is on PATH"
    said = subprocess.run(["strace", "-f", "--seccomp-bpf", "true"], capture_output=True, text=True, check=False)
    return "" if said.returncode == 0 else said.stderr.strip() or "strace fails"


def before(out, below="/"):
    """The words before a command, whose calls are then counted: those with a path that has `below` in it.

    out: the file that has the counts when the command has ended, for `read`.
    """
    settings = {"below": below, "opens": _OPEN, "looks": _LOOK, "reads": _READ}
    words = ["awk", *(part for name, value in settings.items() for part in ("-v", f"{name}={value}")), _COUNT]
    traced = ",".join(f"?{call}" for call in f"{_OPEN} {_LOOK} {_READ}".split())
    options = ["-f", "-qq", "-y", "-s", "0", "--seccomp-bpf", "-e", f"trace={traced}", "-e", "signal=none"]
    return ["strace", *options, "-o", f"|{shlex.join(words)} >{shlex.quote(out)}"]


def read(out):
    """The Calls in such a file; None if there are none, because the command had no time to write them."""
    if not os.path.exists(out):
        return None
    with open(out, encoding="ascii") as file:
        text = file.read()
    return Calls(*map(int, text.split())) if re.fullmatch(r"(\d+ ){4}\d+\n", text) else None
