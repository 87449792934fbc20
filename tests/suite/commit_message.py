#!/usr/bin/env python3
"""The commit-msg hook of git: refuses a message that does not have the form in CONTRIBUTING.md.

ln -s ../../tests/suite/commit_message.py .git/hooks/commit-msg
"""

import re
import sys

LONGEST = 72  # columns
_SUBJECT = re.compile(r"[\w.+/-]+( [\w.+/-]+){0,2}: \S.*")
_MADE_BY_GIT = re.compile(r"(Merge|Revert|fixup!|squash!|amend!) ")
_CUT = "# ------------------------ >8 ------------------------"  # from git commit --verbose: the change follows


def faults(text):
    """What is wrong with a commit's message, one sentence each."""
    lines = [line.rstrip() for line in text.partition(_CUT)[0].splitlines() if not line.startswith("#")]
    while lines and not lines[0]:
        del lines[0]
    if not lines or _MADE_BY_GIT.match(lines[0]):
        return  # git refuses an empty one by itself
    subject, *body = lines
    if not _SUBJECT.fullmatch(subject):
        yield f"the first line is {subject!r}; write COMPONENT: WHAT IT DOES, such as 'rank tables: names a port twice'"
    if len(subject) > LONGEST:
        yield f"the first line has {len(subject)} columns; at most {LONGEST} are shown everywhere"
    if body and body[0]:
        yield "the second line is not empty; leave it so, because programs take the first one for the subject"
    if not any(body):
        yield "nothing follows the first line; write which problem the commit solves, then how"


def main(path):
    """The exit code: 1 if git must not commit."""
    with open(path, encoding="utf-8", errors="replace") as file:
        found = list(faults(file.read()))
    for fault in found:
        print(f"commit message: {fault}", file=sys.stderr)
    if found:
        print(f"commit message: yours is kept; correct it: git commit --edit --file={path}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
