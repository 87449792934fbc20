"""--preflight: keeps the facts of the hosts of a job that ended well; a failed job's report states what has changed."""

from __future__ import annotations

from hccl_tools.common import documents
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.words import short_path
from tools.features.base import Feature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tools.launch.run import Run


class LastGoodHosts(Feature):
    """For a launch that has queried its hosts before the start."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.checked = run.plan.preflight  # the plan of a restart has none

    def settle(self, status: int) -> None:
        checked = self.checked
        if status or not checked or not checked.kept:
            return
        try:
            documents.write_whole(checked.kept, checked.path)
        except OSError as error:
            text = tr("{path} cannot be written: {reason}", path=short_path(checked.path), reason=strerror(error))
            self.run.note(text)

    def reported(self, trouble: str) -> None:
        if self.checked and self.checked.changed and self.run.supervisor.judge.first:
            self.run.say(self.checked.changed)
