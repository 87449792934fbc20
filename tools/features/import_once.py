"""--import_once under mpirun and srun: reports once why a host's ranks cannot be forks, as their agents explain."""

from __future__ import annotations

from hccl_tools.common.quoting import harmless
from tools.features.base import Feature
from tools.forking import reasons
from tools.launch.programs import import_once
from tools.supervise.events import Heard


class ImportOnce(Feature):
    """For a launch whose agents fork the ranks."""

    _told = False

    def begins(self) -> None:
        self._told = False

    def heard(self, event: Heard) -> None:
        if event.feature != "import_once" or self._told:
            return
        self._told = True
        _, host, why = [*event.line.split(" ", 2), "", ""][:3]
        text = reasons.text(why)
        if len(set(self.run.plan.hosts)) > 1:
            text = f"{harmless(host)}: {text}"
        self.run.note(import_once.without(text))
