"""Builds the rank table of pods without an operator: each writes its devices to a shared folder, pod 0 the table.

Pod 0 begins with an empty folder: any content is from an earlier start.  The other pods write their devices again when
their files are gone.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from hccl_tools.build import merging, this_host
from hccl_tools.common import documents
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.refusal import REFUSED, Refusal
from hccl_tools.common.words import named, one_line
from hccl_tools.machine import hccn
from hccl_tools.table import rank_table
from tools.launch.engines.placement import comma
from tools.launch.pods.pod_table import NotReady
from tools.launch.request import Request

TABLE = "hccl.json"


class Parts:
    """The folder `folder`, as pod number `node` of `pods` sees it, which has `devices` and the address `address`."""

    def __init__(self, request: Request, node: int, pods: int, devices: tuple[int, ...], address: str) -> None:
        self.folder, self.node, self.pods = request.table_dir or "", node, pods
        self.chip = request.chip
        self.path = os.path.join(self.folder, TABLE)
        self.own = self.name(node)
        wanted = this_host.Wanted(
            devices=comma(devices),
            server_ip=address,
            hccn_conf=request.hccn_conf or hccn.DEFAULT_CONF,
            chip=request.chip,
            origin=tr("the pod's address"),
        )
        try:
            self.text = rank_table.dump(this_host.build(wanted, lambda _: None))
        except Refusal as refusal:
            raise Refusal(REFUSED, *(f"--table_dir: {line}" for line in refusal.lines)) from refusal
        self.change(self.begin)

    def name(self, node: int) -> str:
        """The file of a pod."""
        return os.path.join(self.folder, f"server_{node}.json")

    def change(self, how: Callable[[], None]) -> None:
        """Raises Refusal where the folder cannot be changed."""
        try:
            how()
        except OSError as error:
            text = tr(
                "{folder}: {reason}; name a folder on a volume that all pods can write",
                folder=one_line(error.filename or self.folder),
                reason=strerror(error),
            )
            raise Refusal(REFUSED, f"--table_dir {text}") from error

    def begin(self) -> None:
        """Removes what earlier starts left, and writes the own devices.  Raises OSError."""
        os.makedirs(self.folder, exist_ok=True)
        mine = ("server_", TABLE) if self.node == 0 else (os.path.basename(self.own) + ".",)
        for name in os.listdir(self.folder):
            if name.startswith(mine):
                os.unlink(os.path.join(self.folder, name))
        self.write()

    def write(self) -> None:
        """Writes the own devices, unless they are there.  Raises OSError."""
        try:
            with open(self.own, encoding="utf-8") as file:
                if file.read(len(self.text) + 1) == self.text:
                    return
        except (FileNotFoundError, ValueError):
            pass
        documents.write_whole(self.text, self.own)

    def look(self) -> None:
        """Does this pod's part for the table now.  Raises NotReady and Refusal."""
        self.change(self.write)
        if self.node == 0 and not os.path.exists(self.path):
            self.change(self.join)

    def join(self) -> None:
        """Writes the table of all pods.  Raises NotReady, Refusal and OSError."""
        there = set(os.listdir(self.folder))
        missing = [node for node in range(self.pods) if os.path.basename(self.name(node)) not in there]
        if missing:
            text = tr(
                "the devices of {pods} are not in {folder} yet; the job has {number} pods",
                pods=named("pod", missing),
                number=self.pods,
                folder=one_line(self.folder),
            )
            raise NotReady(text)
        tables = []
        for node in range(self.pods):
            name = self.name(node)
            try:
                table, problems = rank_table.read(name)
            except rank_table.NotReadable as error:
                raise NotReady(str(error)) from error
            if table is None:
                raise NotReady(problems[0].line(name))
            tables.append(merging.Named(name=name, table=table))
        try:
            whole = merging.merge(tables, self.chip)
        except merging.Refused as refusal:
            raise Refusal(REFUSED, *refusal.lines) from refusal
        documents.write_whole(rank_table.dump(whole), self.path)
