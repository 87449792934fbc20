"""The user's limits: for the whole job (--timeout), and for the time without a new line in any log (--hang_timeout)."""

from __future__ import annotations

import os
from collections.abc import Callable

from hccl_tools.common import colours
from hccl_tools.common.language import tr

TIMEOUT, HANG, STOP_BEFORE = "timeout", "hang", "stop_before"
REPORT = 5  # seconds before a limit in which the ranks have ended and the launcher reports


class Limits:
    """timeout, hang: seconds; 0: no limit.  now: the clock; say: prints a line.

    logs_problem: why the logs are not what the ranks wrote, or "".
    """

    def __init__(
        self,
        timeout: int,
        hang: int,
        now: Callable[[], float],
        say: Callable[[str], object],
        logs_problem: Callable[[], str],
    ) -> None:
        self.timeout, self.hang = timeout, hang
        self._now, self._say, self._logs_problem = now, say, logs_problem
        self.reached = ""  # TIMEOUT, HANG or STOP_BEFORE, once one is
        self._asks_at: float | None = None  # with --stop_before: when the ranks are asked to end
        self._before = 0
        self._ends_at = now() + timeout
        self.again()

    def again(self) -> None:
        """Forgets the logs of an attempt that has ended."""
        self._logs: list[str] = []
        self._look_at = 0.0
        self._still_since = 0.0
        self._seen: object = None  # sizes and times of the logs at the last look; None: they have changed since
        self._files: object = None  # which files these were when all of them were there
        self._told_blind = False

    def stop_before(self, seconds: int, left: float) -> None:
        """The ranks are asked to end so many seconds before a limit that comes in `left` seconds."""
        self._before, self._asks_at = seconds, self._now() + left - seconds

    @property
    def seconds_to_save(self) -> int:
        """The time that the ranks have, once --stop_before is reached; otherwise 0."""
        return max(1, self._before - REPORT) if self.reached == STOP_BEFORE else 0

    def watch(self, logs: list[str]) -> None:
        """These are the ranks' logs."""
        if self.hang:
            self._logs = logs

    def log_has_grown(self) -> None:
        """An agent reports that a log on another host has grown."""
        self._seen = None

    @property
    def any(self) -> bool:
        return bool(self.timeout or self.hang) or self._asks_at is not None

    def check(self) -> bool:
        """Whether a limit is reached; if so, reports which."""
        if not self.any:
            return False
        now = self._now()
        if self.timeout and now >= self._ends_at:
            self.reached = TIMEOUT
            text = tr("the job has run for {seconds} s, its --timeout: stopping all ranks", seconds=self.timeout)
            self._say(colours.styled(text, colours.FAILURE))
        elif self._asks_at is not None and now >= self._asks_at:
            self.reached = STOP_BEFORE
            text = tr(
                "the time limit comes in {seconds} s, the --stop_before: stopping all ranks; they have {time} s to "
                "save",
                seconds=self._before,
                time=self.seconds_to_save,
            )
            self._say(text)
        elif self.hang and self._logs and now >= self._look_at and self._stand_still(now):
            self.reached = HANG
            text = tr(
                "no rank has written to its log for {seconds} s, the --hang_timeout: saving the stacks of all "
                "ranks, then stopping them",
                seconds=self.hang,
            )
            self._say(colours.styled(text, colours.FAILURE))
        return bool(self.reached)

    def _stand_still(self, now: float) -> bool:
        """Whether no log has changed for so long.

        Sizes and times are compared only for equality, so a step of the clock does no harm.
        """
        found, files = self._look()
        if self._files is None and None not in files:
            self._files = files
        if found != self._seen:
            self._seen, self._still_since = found, now
        end = self._still_since + self.hang
        if now >= end:
            if not self._is_blind(files):
                return True
            self._still_since, end = now, now + self.hang
        self._look_at = min(end, now + max(1.0, self.hang / 10))
        return False

    def _look(self) -> tuple[list[object], list[object]]:
        """(what changes when a log is written, which file it is) of each log."""
        found: list[object] = []
        files: list[object] = []
        for log in self._logs:
            try:
                about = os.stat(log)
            except OSError:
                found.append(None)
                files.append(None)
            else:
                found.append((about.st_size, about.st_mtime_ns))
                files.append((about.st_dev, about.st_ino))
        return found, files

    def _is_blind(self, files: object) -> bool:
        """Whether the logs do not change for another reason than a hang; states this once.

        If a log was removed, moved or replaced, its rank goes on writing to the old file.  Logs that were never there
        are those of ranks that hang before their start.
        """
        why = self._logs_problem()
        if not why and self._files is not None and files != self._files:
            why = tr("logs of ranks were removed, moved or replaced")
        if not why:
            return False
        if not self._told_blind:
            self._say(
                tr(
                    "{why}; so --hang_timeout cannot tell whether the ranks work, and does not end the job",
                    why=why,
                )
            )
        self._told_blind = True
        return True
