"""Writes the plogs of a job, in CANN's form."""

START = "2025-01-24-11:00:00"


def at(seconds):
    """A plog's time: 11 o'clock plus so many seconds."""
    whole = int(seconds)
    milliseconds = round((seconds - whole) * 1000)
    return f"2025-01-24-{11 + whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}.{milliseconds:03}.000"


class Job:
    """A job of `ranks` ranks below `folder`, 8 devices a host: node0/rank_0/run/plog/plog-1000_... and so on.

    skew: {host number: seconds that its clock is ahead}.  Ranks in `silent` leave no plog at all.
    """

    def __init__(self, folder, ranks=8, each=8, silent=(), skew=None):
        self.folder, self.ranks, self.each, self.skew = folder, ranks, each, skew or {}
        for rank in range(ranks):
            if rank not in silent:
                text = (
                    f"SetupAgent rankNum[{ranks}], rank[{rank}], rootInfo identifier[hccl_world_group], "
                    f"server[10.0.0.{rank // each}%eth0], logicDevId[{rank % each}], phydevId[{rank % each}], "
                    f"deviceIp[{self.ip(rank)}]"
                )
                self.write(rank, 10, text, level="INFO", kind="run")
                text = f"HcclCommInitRootInfo success,take time [9]us, rankNum[{ranks}], rank[{rank}],"
                self.write(rank, 20, text + "rootInfo identifier[hccl_world_group]", level="INFO", kind="run")

    def ip(self, rank):
        """The address of a rank's device."""
        return f"192.168.{rank // 250}.{rank % 250 + 1}"

    def write(self, rank, seconds, text, level="ERROR", kind="debug", module="HCCL"):
        """Appends a line to a rank's plog."""
        host = rank // self.each
        folder = self.folder / f"node{host}" / f"rank_{rank}" / kind / "plog"
        folder.mkdir(parents=True, exist_ok=True)
        time = at(seconds + self.skew.get(host, 0))
        line = f"[{level}] {module}({1000 + rank},python3):{time} [file.cc:12] [77]{text}\n"
        with open(folder / f"plog-{1000 + rank}_20250124110000000.log", "a", encoding="utf-8") as file:
            file.write(line)

    def link(self, rank, peer, seconds=150, ip=None, tls=""):
        """`rank` waited in vain for a socket of `peer`."""
        self.write(rank, seconds - 0.2, "   ____LINK_ERROR_INFO____")
        row = f"   |  {ip or self.ip(peer)}({peer})   |  16666  |  {self.ip(rank)}({rank})   |  32344  |"
        self.write(rank, seconds, row + "  client  | time out |" + (f"  {tls}  |" if tls else ""))
        self.write(rank, seconds + 0.1, "[AllReduce]call trace: hcclRet -> 9")

    def notify(self, rank, peer, seconds=1900, tag="AllReduce", index=3):
        """`rank` waited in vain in a collective for `peer`."""
        base = "[TaskExceptionHandler][Callback]Task run failed, "
        name = f"{tag}_10.0.0.0%eth0_60000_0_1712529353144389"
        self.write(
            rank, seconds, f"{base}base information is taskType[Notify Wait], tag[{name}], index[{index}], AlgType"
        )
        self.write(
            rank, seconds, f"{base}para information is notify id:[0x50], stage:[ffffffff], remote rank:[{peer}]."
        )

    def exec_stage(self, rank, seconds=1900, tag="AllReduce", index=3, port=60000):
        """The same as CANN 8.5 prints it, which does not say for whom."""
        base = f"[{1000 + rank}][TaskExecStage][Timeout][Host]Task run failed, "
        group = f"10.0.0.0%eth0_{port}_0_1712529353144389"
        name = f"base information is streamID:[2], taskID[21], tag[{tag}_{group}], AlgType(level 0-1-2):[ring]."
        self.write(rank, seconds, base + name)
        self.write(rank, seconds, f"{base}groupRank information is group:[{group}], rankSize[4], rankId[{rank}].")
        if index is not None:
            when = "timeStamp:[2025-10-24-11:16:55.493.816]"
            data = f"opData information is {when}, deviceId[0], index[{index}], count[256], dataType[float32]."
            self.write(rank, seconds, base + data)
