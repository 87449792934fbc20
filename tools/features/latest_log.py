"""Links train.log to the logs of the running attempt; at the end of the run it is a copy: launch/train_log.py."""

from __future__ import annotations

import os

from hccl_tools.common.words import short_path
from tools.features.base import Feature
from tools.launch import train_log


class LatestLog(Feature):
    """The file in the folder where the command was typed."""

    def _log(self, logs: str) -> str:
        ranks = self.run.plan.ranks
        return os.path.join(logs, f"rank_{ranks[0][0]}.log" if ranks else "scheduler.log")

    def logs_moved(self, old: str) -> None:
        """Makes the link follow, if it leads to this job's log."""
        try:
            if not os.path.islink(train_log.NAME) or not os.path.samefile(train_log.NAME, self._log(old)):
                return
            draft = f"{train_log.NAME}.{os.getpid()}.part"
            os.symlink(short_path(self._log(self.run.logs)), draft)
            os.replace(draft, train_log.NAME)
        except OSError:
            return  # it is gone, or the folder cannot be written: a link more or less ends no job

    def reported(self, trouble: str) -> None:
        train_log.settle(os.curdir, self._log(self.run.logs))
