"""Reads what HCCL's lines report about a job: its members, who waits for whom, which rank is lost.

The forms are those of CANN 6 to 9, of plogs, of device logs, and of the messages that MindSpore prints from them.

MindSpore's scheduler and msrun also report the members of the job; these are forms of MindSpore 2.3 to 2.10:

- own_rank: in a rank's log, the rank that the scheduler gave it (rank); in msrun's output, where the lines of all
  ranks are one file, the process is in pid.
- registered: in the scheduler's log, a node that has come (node, rank, host, ip), how many have come by then (came),
  and how many are expected (ranks).  The same for ranks that the scheduler numbers again.
- node_lost: in the scheduler's log, a node that no longer answers (node), or a list of them (nodes), the first (first).
- worker_ended: in msrun's output, the process of a rank that has failed (pid) and how (code; -9: by signal 9).
  msrun kills all others after it.
- started: in msrun's output, a rank that it starts (rank) and its log (log).
- scheduler: the scheduler itself begins.
- not_built: in any log, that not all came in time (role).  This wait ended because others did not come.

Lines of any log that lack a level, a process and a time, as Python prints the errors of other libraries:

- waited: this process waited for others that did not come, or lost them.
- code: CANN's code for a failure of this process itself (code), with its own time.
- own: the process's card failed, or its memory is used up; NCCL names the process: its host, PID and device.
- crash: the process ended by a signal, or by an exception of C++.
- gone: a helper of a rank reports that its rank is gone.
"""

from __future__ import annotations

import re

from hccl_tools.common.record import Row
from tools.logs import aftermath, starters
from tools.logs.forms import Form, form

_WHO = r"\[(?:PG (?P<group>[^\]]{1,80}?) )?Rank (?P<own>\d{1,7})\]"
# What PyTorch and Horovod say of ranks: who came to a barrier or a collective, and who is in another one.
# - mismatch: with TORCH_DISTRIBUTED_DEBUG=DETAIL, two ranks (own, rank) run different collectives (local, remote).
# - absent: ranks that did not pass a barrier (missing).
# - watchdog: a collective of this rank (own) ended by its time limit: its number (seq), kind (op) and size (size), and
#   its group (group).
# - queued: next to it, the number of the last collective that the rank has asked for (queued), and the last that is
#   done (done).
# - stalled: ranks that others wait for in Horovod (missing).  It is a warning: they may still come.
_OF_FRAMEWORKS = (
    form(  # "...on ranks. Rank 1 is running collective: CollectiveFingerPrint(...), but Rank 2 is running ...: ..."
        "mismatch",
        ("Detected mismatch between collectives on ranks",),
        r"collectives on ranks\. Rank (?P<own>\d{1,7}) is running (?:\w{1,20} )?collective: ?(?P<local>.{0,1000}?)"
        r"(?:, but Rank (?P<rank>\d{1,7}) is running (?:[\w ]{1,40} )?collective: ?(?P<remote>.{0,1000}))?$",
    ),
    form(
        "absent",
        ("failed to pass monitoredBarrier",),
        r"Ranks? (?P<missing>\d{1,7}(?:, ?\d{1,7}){0,9999}) failed to pass monitoredBarrier",
    ),
    form(
        "absent",
        ("reached monitoredBarrier, but",),
        r"reached monitoredBarrier, but received errors while waiting for send/recv from rank (?P<missing>\d{1,7})",
    ),
    form(  # WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, ...), or TensorShape=[1, 2]; WorkHCCL of torch_npu
        "watchdog",
        ("Watchdog caught collective operation timeout",),
        _WHO + r" ?Watchdog caught collective operation timeout: Work\w{1,10}\((?:SeqNum=(?P<seq>\d{1,18}), )?"
        r"OpType=(?P<op>\w{1,40})(?:, (?:NumelIn=|TensorShape=)(?P<size>\d{1,18}|\[[\d, ]{0,200}\]))?",
    ),
    form(
        "queued",
        ("ast enqueued NCCL work: ", "ast enqueued HCCL work: "),
        _WHO + r".{0,250}[Ll]ast enqueued \w{4} work: (?P<queued>\d{1,18})"
        r"(?:, last completed \w{4} work: (?P<done>\d{1,18}))?",
    ),
    form("stalled", ("[missing ranks: ",), r"\[missing ranks: ?(?P<missing>\d{1,7}(?:, ?\d{1,7}){0,9999})\]"),
    form(  # newer: "Missing ranks:" or "Stalled ranks:", and below it "1: [allreduce.a, allreduce.b ...]"
        "stalled",
        (": [Horovod", ": [allreduce.", ": [allgather.", ": [broadcast.", "Allreduce/", "_Allreduce_"),
        r"^(?:\[\d{1,7},\d{1,7}\]<std\w{3}>:)?(?P<missing>\d{1,7}): \[\w",
    ),
)
_BRACKETS = re.compile(r"(\w+) ?\[([^\[\]]*)\]")
_GROUP = re.compile(r"\[(hccl-\d+-\d+-\d+-\w+|\w*hccl_world_group)\]\[(\d+)\]")
_PLACE = r"\[?(?P<{0}ip>[0-9A-Fa-f.:]+)/(?P<{0}device>\d+)\]?"
# "|  124.0.0.11(1)  |  16666  |  124.0.0.21(0)  |  3234403008  |  server  | no connect |  DISABLE  |"
# CANN 7 and older print neither ports nor TLS.
_ROW = (
    r"\|\s*(?P<ip>[0-9A-Fa-f.:]+)\((?P<rank>\d+)\)\s*\|(?:\s*(?P<port>\d+)\s*\|)?\s*(?P<own_ip>[0-9A-Fa-f.:]+)\((?P<own>\d+)\)"
    r"\s*\|(?:\s*\d+\s*\|)?\s*(?P<role>server|client)\s*\|\s*(?P<status>[a-z ]+?)\s*\|(?:\s*(?P<tls>[A-Z]+)\s*\|)?"
)


# One such line for each rank: of thousands all are needed, otherwise those without one seem never to have come.
OF_EACH_RANK = frozenset(("registered", "own_rank", "started", "came", "ended_rank"))
_MEMBERS = frozenset(("member", "member_failed", "together"))


class Event(Row):
    """One line with information about the job."""

    kind: str
    time: float | None
    row: int
    values: dict[str, str]
    text: str


FORMS = (
    # --- who is in the job, and since when all are -----------------------------------------------------------------
    form("member", ("SetupAgent rankNum[", "hcclCommInitInfo:commId[", "Entry-HcclCommInitRootInfo", "hcom init by ")),
    form("member_failed", ("HcclCommInitRootInfo failed", "HcclCommInitRootInfoInner failed")),
    form(
        "together", ("HcclCommInitRootInfo success", "HcclCommInitRootInfoInner success", "hcom init by file success")
    ),
    form("limit", ("HCCL_CONNECT_TIMEOUT",), r"HCCL_(?P<what>CONNECT)_TIMEOUT[^\d]*[\[ ](?P<seconds>\d+)\]?"),
    form(
        "limit",
        ("HCCL_EXEC_TIMEOUT", "ExecTimeOut is set"),
        r"(?P<what>EXEC_TIMEOUT|ExecTimeOut)[^\d]*[\[ ](?P<seconds>\d+)\]?",
    ),
    form(
        "limit",
        ("wait socket establish timeout", "get socket timeout! timeout["),
        r"(?P<what>timeout)\[(?P<seconds>\d+)",
    ),
    form("tls", ("TLS SWITCH (",), r"TLS SWITCH \((?P<switch>\d)\)"),
    # --- who waits for whom -----------------------------------------------------------------------------------------
    form("link", ("no connect", "time out", "timeout", "connect fail"), _ROW),
    form(
        "transport",
        ("Transport init error",),
        r"createLink para:\s*rank\[\d+\]-localUserrank\[(?P<own>\d+)\]-"
        r"localIpAddr\[(?P<own_ip>[^\]/]*)(?:/(?P<own_device>\d+))?\]"
        r".*?-remoteUserrank\[(?P<rank>\d+)\]-remote_?[iI]p_?[aA]ddr\[(?P<ip>[^\]/]+)(?:/(?P<device>\d+))?\]",
    ),
    form(
        "p2p",
        ("connected p2p timeout",),
        r"timeout:(?P<seconds>\d+) ?s\. ?local logicDevid:\d+, remote physic id:(?P<device>\d+)",
    ),
    form(
        "notify",
        ("taskType[Notify Wait]", "][Timeout][Host]Task run failed, base "),
        r"tag\[(?P<tag>[^\]]*)\](?:, index\[(?P<index>\d+)\])?",
    ),
    form("operation", ("opData information is timeStamp:[",), r"\bindex\[(?P<index>\d+)\]"),  # since CANN 8.5
    form("remote", ("remote rank:[",), r"remote rank:\[(?P<rank>\w+)\]"),
    form("group", ("groupRank information is group:[",), r"group:\[(?P<group>[^\]]*)\](?:.*?rankId\[(?P<own>\d+)\])?"),
    form("aicpu", ("type:NOTIFY WAIT",), r"type:NOTIFY WAIT, localRank:(?P<own>\d+), remoteRank:(?P<rank>\d+)"),
    form("root_waits", ("need connect rankNum is [",), r"need connect rankNum is \[(?P<ranks>\d+)\]"),
    form("came_number", ("total connected num is [",), r"total connected num is \[(?P<number>\d{1,7})\]"),
    form("came", ("connected rankinfo[LINE",), r"connected rankinfo\[LINE \d+\]: ?(?P<came>[\[\]\d,;]+)"),
    form(
        "missing",
        ("Failed to connect agent[", "failedRankIdList["),
        r"(?:Failed to connect agent|failedRankIdList)\[(?P<missing>[\d, ]+)\]",
    ),
    form("root", ("TopoExchangeAgent: connect server[",), r"connect server\[(?P<ip>[0-9A-Fa-f.:]+) ?: ?\d+\] failed"),
    form(
        "vnic", ("[Start][Vnic]Listen on ip[",), r"Listen on ip\[(?P<ip>[0-9A-Fa-f.:]+)\].*?devPhyId\[(?P<device>\d+)\]"
    ),
    form("no_answer", ("receive msg length from fdhandle failed", "receive from fdhandle failed")),
    # --- what HCCL itself found out -----------------------------------------------------------------------------------
    form(
        "lost",
        ("Cluster Exception Location[IP/ID]",),
        rf"Location\[IP/ID\]:{_PLACE.format('')}(?:.*?Discoverer:{_PLACE.format('by_')})?"
        r".*?ExceptionType:\[(?P<what>[^\]]*)\]",
    ),
    form(
        "lost",
        ("Heartbeat Lost Occurred",),
        r"serverId\[(?P<ip>[^\]]+)\], deviceId\[(?P<device>\d+)\], (?P<what>Heartbeat Lost Occurred)",
    ),
    form(
        "detected",
        ("fails to connect to dstRank",),
        r"srcRank \(server (?P<own_ip>[^,)]+), device ID (?P<own_device>\d+)\) fails to connect to dstRank "
        r"\(server (?P<ip>[^,)]+), device ID (?P<device>\d+)\)",
    ),
    form(
        "cqe",
        ("cqe err status[", "cqe error status["),
        r"cqe err(?:or)? status\[(?P<status>\d+)\](?:, time:\[(?P<when>[^\]]+)\])?"
        r".*?(?:ip|remoteIP):\[(?P<ip>[^\]]+)\]",
    ),
    form(
        "conflict",
        ("CMD information ",),
        r"CMD information (?P<what>\w+) check fail\. ?local\[(?P<local>[^\]]*)\], ?remote\[(?P<remote>[^\]]*)\]",
    ),
    form(
        "conflict",
        ("EI0005",),
        r"parameter ?\[(?P<what>\w+)\], ?local ?\[(?P<local>[^\]]*)\], ?remote ?\[(?P<remote>[^\]]*)\]",
    ),
    form("tls_differs", ("tlsStatus are inconsistent",)),
    # --- whether a process failed by itself ---------------------------------------------------------------------------
    form("waited", aftermath.WAITED_TEXTS, aftermath.WAITED),
    form("code", aftermath.CODE_TEXTS, aftermath.CODE),
    form("crash", aftermath.CRASH_TEXTS, aftermath.CRASH),
    form("own", aftermath.OWN_TEXTS, aftermath.OWN),
    form("gone", ("main process disappeared",), r"^(?!.*\[(?:INFO|DEBUG)\]).*main process disappeared"),
    # --- what MindSpore's scheduler and msrun say ---------------------------------------------------------------------
    form(
        "own_rank",
        ("This node ",),
        r"(?:\((?P<pid>\d{1,10}),.{0,200}?)?This node (?P<node>\S+) rank id: (?P<rank>\d{1,7})\b",
    ),
    form(
        "registered",
        ("The new node: ",),
        r"The new node: (?P<node>[^\s(]+)\s?\(role: MS_WORKER\)(?:, rank id: (?P<rank>\d{1,7}))?"
        r"(?:, device id: (?P<device>\d+))?(?:, hostname: (?P<host>[^\s,]+))?(?:, ip: (?P<ip>[0-9A-Fa-f.:]+))?"
        r".*?registered successfully(?:\. Currently registered node number: (?P<came>\d+), "
        r"expected node number: (?P<ranks>\d+))?",
    ),
    form(
        "registered",
        ("Assign rank id of node id: ",),
        r"Assign rank id of node id: (?P<node>[^\s,]+), role: MS_WORKER(?:, with host ip: (?P<ip>[0-9A-Fa-f.:]+))?"
        r".*?new rank id: (?P<rank>\d{1,7})",
    ),
    form("node_lost", (" is timed out. It may exit",), r"The node: (?P<node>\S+) is timed out\. It may exit"),
    form(
        "node_lost",
        ("Timed out node list is: ",),
        r"Timed out node list is: (?:\[const vector\])?\{(?P<nodes>[^{}]{0,2000})\}"
        r"(?:, worker (?P<first>\S+) is the first one timed out)?",
    ),
    form(
        "worker_ended",
        (" exit with exception.",),  # MindSpore before 2.5 tells no code
        r"Worker process (?P<pid>\d{1,10}) exit with exception\.(?: Error code: (?P<code>-?\d{1,10}))?",
    ),
    form(
        "started",
        ("Start worker process with rank id:",),
        r"Start worker process with rank id: ?(?P<rank>\d{1,7}), log file: ?(?P<log>.+?)\. (?:Environment|Execute)",
    ),
    form("scheduler", ("Begin to Initialize MetaServerNode",)),
    form("not_built", ("Building networking for ",), r"Building networking for (?P<role>MS_\w+) failed"),
    *starters.FORMS,
    *_OF_FRAMEWORKS,
)


def parse(form: Form, line: str, time: float | None, row: int) -> Event | None:
    """The event in the line; None if it does not have this form."""
    if form.kind in _MEMBERS:
        return _member(form.kind, line, time, row)
    found = form.pattern.search(line)
    if not found:
        return None
    text = line[found.start("what") :][:400] if form.kind == "own" else line[-400:]
    return Event(form.kind, time, row, {name: value for name, value in found.groupdict().items() if value}, text)


def _member(kind: str, line: str, time: float | None, row: int) -> Event | None:
    """Rank, number of ranks, group, device and addresses, under one name each whatever CANN's version calls them."""
    said = dict(_BRACKETS.findall(line))
    values = {}
    for name, names in (
        ("ranks", ("rankNum", "totalRanks", "ranks")),
        ("rank", ("rank",)),
        ("server", ("server", "serverId")),
        ("device", ("phydevId", "device", "logicDevId", "deviceLogicId")),
        ("device_ip", ("deviceIp",)),
        ("group", ("identifier",)),
    ):
        value = next((said[word] for word in names if said.get(word)), None)
        if value is not None:
            values[name] = value.partition("%")[0] if name == "server" and not value.startswith("%") else value
    group = _GROUP.search(line)
    if group:
        values["group"] = group[1].rpartition("-")[2]
    if not values.get("rank", "").isdigit():
        return None
    return Event(kind, time, row, values, "")
