"""What ends a launch before it starts."""

USAGE, REFUSED = 2, 78


class Refusal(Exception):
    """The launch cannot be: the lines say why, `status` is the script's exit code."""

    def __init__(self, status, *lines):
        super().__init__("\n".join(lines))
        self.status = status
        self.lines = lines
