"""What a program answered, in words."""

from hccl_tools.common.words import one_line

TIMED_OUT, NOT_FOUND = 124, 127  # as programs.Ended has them


def first_line(ended):
    """The first line that the program said, on stdout or else stderr; "" if it said nothing."""
    text = ended.stdout.strip() or ended.stderr.strip()
    return one_line(text.splitlines()[0].strip()) if text else ""


def failure(ended):
    """Why there is no good answer, as words."""
    if ended.status in (TIMED_OUT, NOT_FOUND):
        return ended.stderr
    text = ended.stderr.strip() or ended.stdout.strip()
    said = one_line(text.splitlines()[-1].strip()) if text else "it said nothing"
    return f"{said} (exit {ended.status})"
