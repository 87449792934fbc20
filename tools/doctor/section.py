"""The interface of a section of the page, and what it is made from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from hccl_tools.common.record import Record, Row
from hccl_tools.machine.programs import Ended
from tools.doctor.npu_smi import Npus
from tools.doctor.page import Line


class Options(Record):
    """What the user asked for, and how."""

    json: bool
    log_dir: str  # where the logs of all runs go
    hccn_conf: str  # the file of addresses where there is no hccn_tool
    shell: str  # the version of the bash that runs the script


class Facts(Row):
    """What is known once all questions have been asked."""

    options: Options
    answers: Mapping[str, Ended]
    npus: Npus


class Section(Protocol):
    TITLE: str

    def questions(self, options: Options) -> dict[str, list[str]]:
        """{key: command}; the commands of all sections run at the same time, and the answers have these keys."""

    def lines(self, facts: Facts) -> Iterable[Line]:
        """What the answers, and files of the system, mean."""
