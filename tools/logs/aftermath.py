"""Determines whether a line reports a failure, or only a consequence: an ended wait, a wrapper, a tear-down.

A rank that waited for another one that did not come prints as many errors as the one that failed.  The forms are those
of MindSpore, CANN 6 to 9, torch_npu, NCCL, gloo and the programs that start ranks.
"""

from __future__ import annotations

import re
from functools import cache

# This process waited for others that did not come, or lost them.
WAITED_TEXTS = (
    "EI0002",
    "EI0006",
    "EE1002",
    "vent wait timeout",
    "vent wait task timeout",
    "tream sync timeout",
    "tream synchronize timeout",
    "to fetch the unique id",
    "not successfully spawned",
    "caught collective operation timeout",
    "collective operations have failed or timed out",
    "remote process exited or there was a network error",
    "ncclRemoteError",
    "Connection reset by peer",
    "Connection closed by peer",
    "Connection closed by remote peer",
    "Timed out waiting",
    "Socket Timeout",
    "socket has timed out after",
    "NCCL communicator was aborted",
    "to recv, got 0 bytes",
    "wait receiving ",
    "wait sending ",
    "CollectiveWait ",
)
_LOUD = r"^(?!.*\[(?:INFO|DEBUG|TRACE|WARNING|EVENT)\])"
_WAITED = (
    r"\bEI000[26]\b|\bEE1002\b|[Ee]vent wait (?:task )?timeout"
    r"|[Ss]tream sync(?:hronize)? timeout|to fetch the unique id|not successfully spawned"
    r"|caught collective operation timeout|collective operations have failed or timed out"
    r"|remote process exited or there was a network error|ncclRemoteError"
    r"|Connection (?:reset|closed) by (?:remote )?peer"
    r"|Timed out waiting \d|[Ss]ocket (?:has timed out after|Timeout)|NCCL communicator was aborted|recv, got 0 bytes"
    # MindSpore's collectives on CPU
    r"|\bwait (?:receiving|sending) \[?\d.{0,40}failed|\bCollectiveWait \[.{0,40}failed"
)
WAITED = rf"{_LOUD}.*(?:{_WAITED})"
# CANN's code for a failure of this process; those of waits and the inner errors, which are of any kind, are not here.
CODE_TEXTS = ("EJ0", "EI0", "EL0", "EE1", "EE4", "EZ0", "EZ3", "EC0", "E30", "E20", "E10", "E40", "E50", "E80", "E89")
CODE = (
    rf"{_LOUD}(?:.*[^\w])?(?P<code>"
    r"EJ000\d|EI00(?!02|06|05)\d\d|EL000\d|EE1001|EE4\d{3}|EZ[03]\d{3}|EC0\d{3}|E[1-8](?!9999)\d{4}): "
)
CRASH_TEXTS = (
    "Segmentation fault",
    "Bus error",
    "terminate called after throwing",
    "Fatal Python error",
    "double free or corruption",
    "malloc_consolidate()",
    "(core dumped)",
)
CRASH = (
    rf"{_LOUD}.*"
    r"(?:Segmentation fault|Bus error|terminate called after throwing|Fatal Python error: |double free or corruption"
    r"|malloc_consolidate\(\)|\(core dumped\))"
)

# The card of this process failed, or its memory is used up: whatever else the line states, no wait ends so.
OWN_TEXTS = ("CUDA error: ", "out of memory", "OutOfMemoryError", "uncorrectable ECC error")
_OWN = (
    r"CUDA error: (?!.{0,80}(?:driver shutting down|peer access))|\b(?:CUDA|NPU|HIP|XPU) out of memory"
    r"|(?:\w{1,40}\.){0,4}OutOfMemoryError\b|\b[Cc]uda failure(?: \d{1,4})? 'out of memory'|uncorrectable ECC error"
)
_NCCL = r"(?P<host>[\w.-]{1,255}):(?P<pid>\d{1,10}):\d{1,10} \[(?P<device>\d{1,4})\]"
OWN = rf"{_LOUD}(?:{_NCCL})?.*?(?P<what>{_OWN})"
_IS_OWN = re.compile(_OWN)

# Somebody ended this process: a person, or a program as another rank had ended.
STOPPED = re.compile(
    r"got signal: (?:15|2)\b|[Rr]eceived signal (?:15|2)\b|SIGTERM|SIGINT|KeyboardInterrupt"
    r"|killed by signal: Terminated"
)
# What ends by a limit in time and is this rank's own all the same: its data, or an operator.
_OWN_LIMIT = re.compile(r"GetNext|AI ?CPU|aicpu|AI ?Core|aicore|[Vv]ector core|data ?set|[Dd]ata ?queue")
_LIMIT = re.compile(r"time[ds]? ?out|Wait timeout")
_AFTER = "|".join(
    (
        # a wait that ended, or a peer that is gone
        _WAITED,
        r"call trace: hcclRet|EI000[26]\b|receive (?:msg length )?from fdhandle",
        r"LINK_ERROR_INFO|comm error, device|dest_ip\(|\|-{5}|_{20}|-{20}|\|  ?[\d.]+\(|[123]\. (?:the|an) ",
        r"connection failure between this device|[Nn]otify [Ww]ait|NOTIFY WAIT|remote rank:",
        r"DisplayConnectionedRank",
        r"TopoDetect ERROR|failedRankIdList|RanktableDetect|fails to connect to dstRank|links? establish",
        r"Cluster Exception Location|setup topo detect error|comm is not exist|HcclCommInitRootInfo\w* failed",
        r"\[TaskExceptionHandler\]|\[TaskExecStage\]\[Timeout\]|\[HeartbeatAbnormal\]",
        r"Transport init error|Alloc transports failed",
        r"created commHD fail|op_base hcclComm|Heartbeat [Ll]ost|opData information|task sequence is",
        r"\[Recv\]\[RaSocket\]",
        r"Building networking for MS_|Failed to initialize cluster|processes in the cluster are not successfully",
        r"There are \d+ abnormal compute graph nodes|worker \S+ is the first one timed out",
        r"exchangeData|\[RaSocket\]|recv fail|Socket closed|Connection refused|Broken pipe|ncclSystemError.*socket",
        r"failed to pass monitoredBarrier|received errors while waiting for send/recv from rank",
        r"ConnectionResetError|ConnectionAbortedError|BrokenPipeError",
        r"root rank process of this group has exited|total number of timed out node|Time out nodes are",
        r"heartbeat message to meta server|Client connected end of file|DistNetworkError|DistStoreError",
        r"[Ww]atchdog thread terminated|Some collective operations|communicator was aborted|ncclInternalError: Int",
        # what is torn down after it
        r"\[Push\]\[Data\]failed to send|acltdtSendTensor|pointer\[stream\] is null|DestroyHandle|TdtHandle",
        r"[Tt]hread has already been terminated|queue (?:had|has|was) been (?:interrupted|destroyed)",
        r"main process disappeared|[Dd]estroy\w*.{0,40}(?:fail|error)|Finalize\w*.{0,20}(?:fail|error)",
        r"ResetDevice|reset device|Uninit|ctx is NULL|context pointer null|hcom destroy",
        # what ends a rank because another one ended
        STOPPED.pattern,
        r"kill all other workers",
        r"closing signal|abnormal compute graph nodes|Scheduler process \d+ exit",
        r"Distributed job exited with exception|ChildFailedError|ProcessExitedException",
    )
)
_WRAPS = "|".join(
    (
        r"Ascend Error Message|Ascend error occurred|[Ii]nner [Ee]rror|call trace|The details refer to",
        r"SyncStream|aclrtSynchronize|[Ss]ynchronize ?(?:[Ss]tream|[Dd]evice)|sync stream|stream sync",
        r"Sync run failed|Preprocess failed before run graph|Distribute Task Failed|load task fail",
        r"Run task for graph|Run graph failed",
        r"(?:[Ee]xecute|[Rr]un|[Ll]aunch) (?:graph|model|kernel|task)\w* (?:\w+ ){0,3}(?:fail|error)",
        r"model (?:stream )?execute failed|\[?graph[_ ]?execut\w+\]?.{0,30}(?:fail|error)",
        r"hccl api failed|HCCL (?:function )?error|ERR02\d{3}|DIST call|NPU (?:function )?error",
        r"error code is 5\d{5}",
        r"collective communication init\w* failed|Communicator of .{0,80} inited|Init communicator",
        r"runtime result = |FUNC:FuncErrorReason|FUNC:ReportCallError|execute failed, reason=",
        r"DistBackendError|NCCL error|Call runtime \w+ error|Call \w+ failed",
        r"Process\w*Exception|CalledProcessError|returned non-zero exit status|exited with code",
    )
)


@cache
def _compiled(source: str) -> re.Pattern[str]:
    """The expression; most launches that fail have no line that one of these long ones is for."""
    return re.compile(source)


def follows(text: str) -> bool:
    """Whether an error only states that a wait ended, that a peer is gone, or that something is torn down."""
    if _IS_OWN.search(text) and not STOPPED.search(text):
        return False
    return bool(_compiled(_AFTER).search(text) or (_LIMIT.search(text) and not _OWN_LIMIT.search(text)))


def wraps(text: str) -> bool:
    """Whether an error only states that a part of MindSpore, CANN or torch failed: why is in other lines."""
    return bool(_compiled(_WRAPS).search(text))
