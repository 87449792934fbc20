"""The process next to a launcher for jobs that have launchers on several hosts and may start their ranks again.

tools/features/hosts_attempts.py starts it. Orders arrive on stdin; events for the launcher go to stdout.
"""

from __future__ import annotations

from tools.attempts.hub import Hub
from tools.attempts.launcher import Launcher, Left
from tools.attempts.spoke import Spoke


def main() -> None:
    """Ends when the launcher leaves the job."""
    try:
        launcher = Launcher()
        facts = launcher.facts()
        launcher.end_with_it(facts["launcher"])
        (Spoke if facts["number"] else Hub)(launcher, facts).serve()
    except Left:
        return


if __name__ == "__main__":
    main()
