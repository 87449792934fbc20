"""Reads the rank table that an operator writes for the pods of a job: is it complete, and which server is this pod?

The file is missing, empty or "initializing" until all pods have their devices.  After a fault it is written again.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable

from hccl_tools.build import from_legacy
from hccl_tools.check import verdict
from hccl_tools.common.documents import JsonObject
from hccl_tools.common.language import strerror, tr
from hccl_tools.common.problem import errors
from hccl_tools.common.record import Record
from hccl_tools.common.refusal import REFUSED, Refusal, refused
from hccl_tools.common.words import clauses, count, named, one_line, short, some
from hccl_tools.machine import host
from hccl_tools.table import look_alikes, other_files, rank_table
from hccl_tools.table.address import packed
from hccl_tools.table.view import objects
from tools.launch.pods.pod_job import PodJob, described
from tools.launch.tables import table_fit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from tools.launch.request import Request

    T = TypeVar("T")

COMPLETED = "completed"
# By which a pod knows itself, in this order.  Beside a container_ip the other two are the node's, which another pod, of
# this job or of another one, has, too.
_KEYS = ("container_ip", "host_ip", "server_id")
TOO_LATE = 124  # exit code: what was waited for did not come
WAIT = 1800  # seconds: other nodes may have to load an image of many GiB
SAY_EVERY = 30  # seconds
LOOK_EVERY = 0.5  # seconds, but at most a tenth of the time goes into looking: a table may have 65,536 ranks


class NotReady(Exception):
    """It cannot be used yet.  The text is the reason, for the user."""


class Initializing(NotReady):
    """The operator has written the table, but states that it is not completed."""


class PodServer(Record):
    """A server of the table."""

    address: str  # at which other pods reach it
    addresses: list[str | None]  # its values for _KEYS
    ranks: list[tuple[int, int]]  # (rank, device), in rank order


class PodTable(Record):
    """A completed table that has this pod."""

    data: bytes
    servers: list[PodServer]  # in the order of their ranks
    own: int  # the number of this pod's server
    digest: str  # see below
    warnings: list[str]  # what validate_hccl.py would warn about
    is_rewritten: bool = False  # the operator's file is of a legacy format


class WatchedTable(Record):
    """The operator's file, which may be rewritten while the ranks run, because the job moves."""

    path: str  # absolute
    digest: str  # of the table that the ranks have


def read(path: str) -> tuple[bytes, JsonObject]:
    """(bytes, document) of the completed table at `path`.  Raises NotReady, and Refusal where waiting cannot help."""
    shown = one_line(path)
    if os.path.exists(path) and not os.path.isfile(path):
        raise refused("{path} is not a regular file; name the file of the rank table", path=shown)
    try:
        with open(path, "rb") as file:
            data = rank_table.read_stream(file, path)
    except FileNotFoundError as error:
        raise NotReady(tr("there is no rank table {path}", path=shown)) from error
    except OSError as error:
        raise NotReady(tr("{path} cannot be read: {reason}", path=shown, reason=strerror(error))) from error
    if not data.strip():
        raise NotReady(tr("{path} is empty", path=shown))
    document, problems = rank_table.parse(data)
    foreign = other_files.named(data) if document is None else look_alikes.problem(document)
    if foreign:  # it will not become a rank table
        raise Refusal(REFUSED, *(problem.line(shown) for problem in problems or verdict.check(document)))
    if document is None:
        raise NotReady(tr("{path} is incomplete: {fault}", path=shown, fault=short(problems[0].text, 120)))
    status = document.get("status") if isinstance(document, dict) else None
    if isinstance(document, dict) and status != COMPLETED:
        shown_status = short(json.dumps(status))
        raise Initializing(tr('the status of {path} is {status}, not "completed"', path=shown, status=shown_status))
    return data, document


def digest(document: JsonObject) -> str:
    """SHA-256 of what the ranks read: the same for a table that was written again without a change."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def take(path: str, job: PodJob, on_npus: bool, generation: str | None) -> PodTable:
    """The table at `path`, if it is completed, good, and of this pod and job.  Raises NotReady and Refusal."""
    data, document = read(path)
    problems = verdict.check(document, generation)
    if problems:
        _, problems = verdict.check_bytes(data, generation)  # with their lines
    wrong = [problem.line(path) for problem in errors(problems)]
    if wrong:
        raise Refusal(REFUSED, *wrong)
    table = from_legacy.converted(document)
    if table:
        data = rank_table.dump(table).encode("utf-8")
    servers = servers_of(table or document, ranks_of_each(document, job))
    if not servers:
        raise Refusal(REFUSED, table_fit.without_servers(path))
    own = own_server(servers, job, path)
    _compare(servers, own, job, on_npus, path)
    warnings = [problem.line(path) for problem in problems if problem.code != "bad-path"]
    warnings += [from_legacy.remark(path, "")] if table else []
    return PodTable(
        data=data, servers=servers, own=own, digest=digest(document), warnings=warnings, is_rewritten=bool(table)
    )


def ranks_of_each(document: JsonObject, job: PodJob) -> int | None:
    """How many ranks each pod has, as far as the environment says it: of the pod itself, or how many pods there are."""
    if job.local or not job.pods:
        return job.local.value if job.local else None
    each, rest = divmod(len(objects(document, "rank_list")), job.pods.value)
    return None if rest else each


def servers_of(document: JsonObject, local: int | None = None) -> list[PodServer]:
    """The servers of a good table, in the order of their ranks.

    Those of version 2.0 have no address; local: the ranks of each, where that is known.
    """
    found = []
    for (_, entry), server in zip(objects(document, "server_list"), rank_table.servers(document)):
        addresses = [value if isinstance(value := entry.get(key), str) and value else None for key in _KEYS]
        reached = next(filter(None, addresses))
        found.append(PodServer(address=reached, addresses=addresses, ranks=_ranks(server)))
    for server in rank_table.servers_of_ranks(document, local):
        found.append(PodServer(address="", addresses=[None] * len(_KEYS), ranks=_ranks(server)))
    return sorted(found, key=lambda server: server.ranks[0])


def _ranks(server: rank_table.Server) -> list[tuple[int, int]]:
    return sorted((int(device.rank_id), int(device.device_id)) for device in server.devices)


def own_server(servers: list[PodServer], job: PodJob, path: str) -> int:
    """The number of the server that is this pod.  Raises NotReady: the table of this job may come later."""
    if not servers[0].address:
        return _by_number(servers, job, path)
    mine = {packed(text) for text in job.addresses.values()}
    tests: list[Callable[[str], bool]] = [lambda text: packed(text) in mine]
    tests += [] if "POD_IP" in job.addresses else [host.owns]
    ambiguous: list[int] = []
    for is_mine in tests:
        for key in range(len(_KEYS)):
            named_by = (server.addresses[: key + 1] for server in servers)
            values = ((number, texts[-1]) for number, texts in enumerate(named_by) if key == 0 or texts[0] is None)
            found = [number for number, text in values if text is not None and is_mine(text)]
            if len(found) > 1 and job.devices:  # pods that share a node
                found = [n for n in found if {device for _, device in servers[n].ranks} <= set(job.devices)]
            if len(found) == 1:
                return found[0]
            ambiguous = ambiguous or found
    shown = one_line(path)
    if ambiguous:
        text = tr(
            "{number} servers of {path} have an address of this pod ({pod})",
            number=len(ambiguous),
            path=shown,
            pod=described(job),
        )
        raise NotReady(clauses(text, tr("set POD_IP to status.podIP, and let the operator write container_ip")))
    names = some([one_line(server.address) for server in servers], 8)
    text = tr(
        "{path} has servers {names}, none of which is this pod ({pod})", path=shown, names=names, pod=described(job)
    )
    raise NotReady(clauses(text, tr("it is the table of another job, or of an earlier start")))


def _by_number(servers: list[PodServer], job: PodJob, path: str) -> int:
    """The number of the server that is this pod, in a table without addresses.  Raises Refusal and NotReady."""
    shown = one_line(path)
    if len(servers) == 1 and not (job.node and job.node.value):
        return 0
    if not job.node:
        text = tr(
            "{path} gives no addresses for its ranks, and no variable or option gives this pod's number", path=shown
        )
        raise Refusal(REFUSED, clauses(text, tr("set MS_NODE_RANK, or give --node_rank")))
    if job.node.value < len(servers):
        return job.node.value
    pods = count(len(servers), "pod")
    text = tr("{path} has the ranks of {pods}, and {source} is {value}", path=shown, pods=pods, **job.node.as_dict())
    raise NotReady(clauses(text, tr("it is the table of another job, or of an earlier start")))


def _compare(servers: list[PodServer], own: int, job: PodJob, on_npus: bool, path: str) -> None:
    """Raises NotReady where table and environment contradict each other: the table may be that of an earlier start."""
    world = sum(len(server.ranks) for server in servers)
    ranks = servers[own].ranks
    shown = one_line(path)
    lines = []
    if job.world and job.world.value != world:
        lines.append(
            tr(
                "{path} has {ranks}, {source} says {number}",
                path=shown,
                ranks=count(world, "rank"),
                source=job.world.source,
                number=job.world.value,
            )
        )
    devices = [device for _, device in ranks]
    if on_npus and job.devices and sorted(devices) != list(job.devices):
        lines.append(
            tr(
                "{path} gives this pod {theirs}, the environment {ours}",
                path=shown,
                theirs=named("device", devices),
                ours=named("device", job.devices),
            )
        )
    elif job.local and job.local.value != len(ranks):
        lines.append(
            tr(
                "{path} gives this pod {ranks}, {source} says {number}",
                path=shown,
                ranks=count(len(ranks), "rank"),
                source=job.local.source,
                number=job.local.value,
            )
        )
    if lines:
        raise NotReady(clauses(*lines, tr("it is the table of another job, or of an earlier start")))


class Patience:
    """The seconds that all waits of one start may take together; `say` tells the user what they are for."""

    def __init__(self, request: Request, say: Callable[[str], None]) -> None:
        self.seconds = WAIT if request.pod_wait is None else request.pod_wait
        self.until = time.monotonic() + self.seconds
        self.looks_once = request.dry_run
        self.say = say
        self._said, self._said_at = "", 0.0

    def until_ready(self, look: Callable[[], T], remedy: str) -> T:
        """The result of `look`, once it no longer raises NotReady.  Raises Refusal: after the time, with the remedy."""
        began = time.monotonic()
        while True:
            looked = time.monotonic()
            try:
                return look()
            except NotReady as reason:
                now = time.monotonic()
                if self.looks_once or now >= self.until:
                    waited = tr("waited for {seconds} s: {reason}", seconds=round(now - began), reason=reason)
                    raise Refusal(TOO_LATE, clauses(waited, remedy)) from reason
                self.tell(str(reason), now - began, now)
            time.sleep(max(LOOK_EVERY, 9 * (time.monotonic() - looked)))

    def tell(self, reason: str, waited: float, now: float) -> None:
        """Reports what is waited for, if that is new, or if the user read it long ago."""
        if reason == self._said and now < self._said_at + SAY_EVERY:
            return
        self._said, self._said_at = reason, now
        self.say(
            tr(
                "waiting: {reason} ({waited} s of at most {seconds} s)",
                reason=reason,
                waited=round(waited),
                seconds=self.seconds,
            )
        )
