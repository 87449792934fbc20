"""What PyTorch and Horovod say of ranks: who came to a barrier or a collective, and who is in another one.

- mismatch: with TORCH_DISTRIBUTED_DEBUG=DETAIL, two ranks (own, rank) run different collectives (local, remote).
- absent: ranks that did not pass a barrier (missing).
- watchdog: a collective of this rank (own) ended by its time limit: its number (seq), kind (op) and size (size), and
  its group (group).
- queued: beside it, the number of the last collective that the rank has asked for (queued), and the last that is done.
- stalled: ranks that others wait for in Horovod (missing).  It is a warning: they may still come.
"""

from __future__ import annotations

from tools.logs.forms import form

_WHO = r"\[(?:PG (?P<group>[^\]]{1,80}?) )?Rank (?P<own>\d{1,7})\]"
FORMS = (
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
