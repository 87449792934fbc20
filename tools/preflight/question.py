"""The question for every host, sent as JSON; the asker fills in the parts that differ from host to host."""

from __future__ import annotations

from hccl_tools.common.record import Record
from tools.launch.engines import hccl_ports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hccl_tools.common.documents import JsonObject


class Place(Record):
    """The server of the rank table that a host is: by what it is known there, and {device: its address}."""

    names: Sequence[str]
    devices: Mapping[str, str | None]


class Question(Record):
    """The question to one host: what its facts are about.

    host, hosts: the name that the asker has for it, and how many there are.
    first:      the first host of the job, where MindSpore's scheduler runs.
    first_at:   its address, where its name alone need not lead to it; empty: the name does.
    folder, log_dir, data: paths of the job; data is empty if the asker names none.
    files:      {absolute path: digest on the asking host} of the program, of what it imports, and of the config.
    modules:    modules that the program imports and that are installed, and not files of its own.
    set_here:   names of the variables that are set where the command was typed: every rank gets these from there.
    cann:       the folder of CANN there; empty if no variable names it.
    devices:    the devices that the ranks use, by their physical ids; None: all.
    slots:      the ranks of the host; None: not specified.
    ports:      TCP ports that the job will listen on, on the first host.
    hccl:       the first port of HCCL, on every host.
    hccn_conf:  the file of addresses where there is no hccn_tool.
    table:      (path, digest) of the rank table; None without one.
    place:      the host's server in it; None where that is not known.
    salt:       for digests of secrets; another one for each check.
    links:      the connections of this host, see links.question; None: none.
    quick:      leave out what takes longer than a second, such as the programs of the driver.
    """

    host: str
    hosts: int
    first: str
    first_at: str = ""
    folder: str
    log_dir: str
    data: str = ""
    files: Mapping[str, str] = {}
    modules: Sequence[str] = ()
    set_here: Sequence[str] = ()
    cann: str = ""
    devices: Sequence[int] | None = None
    slots: int | None = None
    ports: Sequence[int] = ()
    hccl: int = hccl_ports.BASE
    hccn_conf: str = "/etc/hccn.conf"
    table: Sequence[str] | None = None
    place: Place | None = None
    salt: str = ""
    links: JsonObject | None = None
    quick: bool = False

    def as_json(self) -> JsonObject:
        """The form that is sent to the host."""
        return {**self.as_dict(), "place": self.place.as_dict() if self.place else None}


def read(asked: Any) -> Question:
    """Parses the output of `as_json`; the asker has the same version of this project."""
    place = asked["place"]
    return Question(**{**asked, "place": Place(**place) if place else None})
