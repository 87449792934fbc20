"""What ranks print that do not start, or lose a data worker or a GPU: other wordings than the samples of the rules.

The lines are ours; their form is that of MindSpore 2.10, PyTorch 2, NCCL 2, CUDA 12 and glibc 2.
"""

import pytest
from known import ENTRIES, of_launches
from suite.cases import for_each

from tools.logs import known_failures, line_heads, owners, plog, scan

HEAD = "DISTRIBUTED(26135,7fc4200a06c0,python):2026-01-02-03:04:05.146.623 [mindspore/ccsrc/x.cc:79]"

HEALTHY = (
    f"[WARNING] {HEAD} SocketEventHandler] Event value fd: 11, errno: 11 Resource temporarily unavailable, type:1",
    f"[WARNING] {HEAD} SocketEventHandler] Event value fd: 9, errno: 104 Connection reset by peer, please check remote"
    " peer address: 10.0.0.1:33690 in worker log to find out which worker disconnected.",
    f"[WARNING] {HEAD} SocketEventHandler] Event value fd: 9, errno: 111 Connection refused, remote peer: 10.0.0.1:9",
    f"[WARNING] {HEAD} SocketEventHandler] Event value fd: 9, errno: 113 No route to host, remote peer: 10.0.0.1:9",
    f"[WARNING] {HEAD} BuildCluster] Topology build timed out., retry(7/1200).",
    f"[WARNING] {HEAD} Register] Failed to connect to the meta server node url: 127.0.0.1:18231",
    f"[WARNING] {HEAD} ReconnectWithTimeoutWindow] Failed to register and try to reconnect to the meta server.",
    f"[WARNING] {HEAD} ReassignNodeRank] Rank ids are already set by numeric node ids. No need to reassign them.",
    f"[WARNING] {HEAD} CreateCommunicationGroup] The group mccl_world_group has already existed.",
    f"[WARNING] {HEAD} Finalize] Cluster currently has 3 alive nodes.",
    f"[WARNING] {HEAD} QueryUniqueID] Retry to lookup the unique id for group hccl_world_group, retry time: 3/66",
    f"[WARNING] {HEAD} StartServerSocket] The address 10.0.0.1:8118 is already in use. Select another url and"
    " increase port to: 8119",
    "[INFO] node1:1:1 [0] NCCL INFO NET/Plugin: No plugin found (libnccl-net.so), using internal implementation",
    "node1:1:1 [0] NCCL INFO NET/IB : No device found.",
    "node1:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>",
)

SEEN = {
    "device-id-beyond": (
        "Call aclrtSetDevice failed, ret[507033]. Got device count[16] and device id[16], please check if device id",
        "Got device count[1] and device id[3], please check if device id is valid.",
        "RuntimeError: call aclrtSetDevice failed, error_code : 107001",
    ),
    "unique-id-not-fetched": (
        f"[ERROR] {HEAD} QueryUniqueID] Failed to fetch the unique id of the collective lib from the meta server for"
        " group pp-0-8. Root rank: 8",
    ),
    "worker-rejected": (
        f"[ERROR] {HEAD} Register] Node 3 has been registered repeatedly. It's host ip is 10.0.0.3. Reject this node.",
    ),
    "scheduler-timeout": (f"[ERROR] {HEAD} BuildCluster] Topology build timed out., retry(30/30).",),
    "scheduler-lost-workers": (
        f"[ERROR] {HEAD} UpdateTopoState] The node: 12 is timed out. It may exit with exception,",
    ),
    "worker-killed": ("/job/start.sh: line 4: 31337 Killed                  python -u train.py --config x.yaml",),
    "no-ascend-software": (
        "ModuleNotFoundError: No module named 'tbe'",
        "ModuleNotFoundError: No module named 'te.platform'",
        "ModuleNotFoundError: No module named 'hccl.manage'",
        "ModuleNotFoundError: No module named 'topi'",
        "ModuleNotFoundError: No module named 'auto_tune'",
        "ImportError: libge_common_base.so: cannot open shared object file: No such file or directory",
        "OSError: libopapi.so: cannot open shared object file: No such file or directory",
    ),
    "module-not-found": (
        "ModuleNotFoundError: No module named 'hccl_helpers'",
        "ModuleNotFoundError: No module named 'test_data'",
        "ModuleNotFoundError: No module named 'aclocal'",
    ),
    "mindspore-broken": ("ModuleNotFoundError: No module named 'mindspore._c_dataengine'",),
    "old-mindspore-api": ("AttributeError: module 'mindspore' has no attribute 'set_memory'",),
    "no-ascend-driver": ("ImportError: libdrvdsmi_host.so: cannot open shared object file: No such file or directory",),
    "cann-version-mismatch": ("ImportError: libtorch_npu.so: undefined symbol: aclnnAddGetWorkspaceSize",),
    "import-error": ("ImportError: /opt/libfoo.so: undefined symbol: foo_start",),
    "glibc-too-old": ("python3: /lib/aarch64-linux-gnu/libc.so.6: version `GLIBC_2.28' not found (required by x.so)",),
    "libstdcxx-too-old": ("ImportError: libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by x.so)",),
    "static-tls": (
        "OSError: /x/scikit_learn.libs/libgomp-d22c30c5.so.1.0.0: cannot allocate memory in static TLS block",
    ),
    "numpy-version": (
        "ImportError: numpy._core.multiarray failed to import",
        "AttributeError: module 'numpy' has no attribute 'float'.",
    ),
    "protobuf-version": ("TypeError: Descriptors cannot be created directly.",),
    "shm-too-small": (
        "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. It is possible that dataloader's",
        "node1:9:9 [0] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Ab12 (size 4096)",
        "RuntimeError: unable to write to file </torch_31_2_0>: No space left on device (28)",
        "OSError: [Errno 28] No space left on device: '/dev/shm/sem.x'",
    ),
    "no-space-left": ("OSError: [Errno 28] No space left on device: '/data/ckpt/a.ckpt'",),
    "shared-memory-object": (
        "unable to open shared memory object </torch_7_8> in read-write mode: Too many open files",
    ),
    "data-worker-killed": ("RuntimeError: DataLoader worker (pid 88) is killed by signal: Killed. ",),
    "data-worker-died": ("RuntimeError: DataLoader worker (pid 5) exited unexpectedly with exit code 1.",),
    "fork-uses-device": (
        "RuntimeError: Cannot re-initialize NPU in forked subprocess. To use NPU with multiprocessing",
    ),
    "column-type": (f"[CRITICAL] {HEAD} ParseType] Got unsupported acl datatype: -1",),
    "data-queue-timeout": (
        "Aicpu kernel execute failed, device_id=3, fault kernel_name=GetNext, fault op_name=Default",
    ),
    "gpu-ordinal": ("torch.AcceleratorError: CUDA error: invalid device ordinal",),
    "out-of-device-memory": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB",
        "RuntimeError: NPU out of memory. Tried to allocate 20.00 MiB (NPU 0; 60.97 GiB total capacity)",
    ),
    "out-of-host-memory": ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 5.00 GiB for an array",),
    "nccl-no-interface": ("NCCL WARN NET/Socket : no socket interface found",),
    "nccl-unreachable": ("socketStartConnect: Connect to 10.0.0.2<57141> failed : Connection refused",),
    "nccl-peer-closed": ("NCCL WARN Net : Connection closed by remote peer node2.cluster<43210>",),
    "locked-memory": ("NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",),
    "gpu-device-assert": ("/pytorch/x.cu:1: operator(): block: [1,0,0], Assertion `idx >= 0` failed.",),
    "checkpoint-mismatch": (
        "size mismatch for fc.bias: copying a param with shape torch.Size([10]) from checkpoint",
        "RuntimeError: For 'load_param_into_net', a.b in the argument 'net' should have the same type as a.b in the",
    ),
    "read-only-file-system": ("OSError: [Errno 30] Read-only file system: 'kernel_meta'",),
    "aborted": ("[1,3]<stderr>:terminate called after throwing an instance of 'c10::Error'",),
    "syntax-error": ("[rank2]: SyntaxError: invalid syntax",),
}


@for_each("code, line", [(code, line) for code, lines in SEEN.items() for line in lines])
def test_other_wordings_of_a_failure(code, line):
    assert [entry.code for entry, _ in known_failures.by_lines(ENTRIES, ["a", line, "b"])] == [code]


@for_each("line", HEALTHY)
def test_a_line_of_a_healthy_start_is_no_failure(line, tmp_path):
    assert known_failures.by_lines(ENTRIES, ["a", line, "b"]) == []
    path = tmp_path / "scheduler.log"
    path.write_text(f"a\n{line}\nb\n")
    scan.use(ENTRIES)
    with path.open("rb") as file:
        assert scan.read(file, "scheduler.log", False).hits == ()


def test_a_warning_that_counts_for_nothing_is_one_of_mindspore_or_cann():
    assert plog.warns("[WARNING] ME(25983:140231904897920,MainProcess):2026-01-02-03:04:05.102.000 [x.py:1] text")
    assert not plog.warns("WARNING:root:text") and not plog.warns("[ERROR] ME(1,7f,python) [WARNING] text")


WRAPPED = ("    {}", "[rank3]: {}", "[1,3]<stderr>:{}", "2026-01-02T03:04:05.678901234Z {}", "worker-1: {}", "{}\r")
OF_SSH = {"ssh-connection-dropped", "host-lost"}  # ssh writes them itself, in front of no log


@pytest.mark.parametrize("wrap", WRAPPED)
def test_what_stands_before_a_line_hides_no_failure(wrap):
    """Indentation, a rank's name, the time of Docker or kubectl: the log is then read by `scan`, line by line."""
    hidden = [
        (entry.code, sample)
        for entry in of_launches()
        if owners.TRAIN in entry.logs and entry.code not in OF_SSH
        for sample in entry.samples
        if not entry.takes(line_heads.clean(wrap.format(sample).encode()))
    ]
    assert hidden == []


def test_a_device_that_the_host_has_is_not_beyond_its_number():
    for line in ("Got device count[8] and device id[7], please check", "Got device count[16] and device id[9], please"):
        assert known_failures.by_lines(ENTRIES, [line]) == []


def test_a_data_operation_on_the_device_explains_the_memory_that_is_taken(tmp_path):
    log = tmp_path / "rank_0.log"
    log.write_text(
        'RuntimeError: Traceback (most recent call last):\n  File "/x/t.py", line 3, in f\n    img = op(img)\n'
        '  File "/x/site-packages/mindspore/dataset/transforms/transforms.py", line 105, in __call__\n'
        "    executor = cde.Execute(self.parse())\n"
        "RuntimeError: Ascend kernel runtime initialization failed. The details refer to 'Ascend Error Message'.\n"
        + 9
        * "-\n"
        + "Malloc device memory failed, free memory size is less than half of total memory size.Device 0 Device MOC"
        " total size:65464696832 may be other processes occupying this card, check as: ps -ef|grep python\n"
    )
    scan.use(ENTRIES)
    with log.open("rb") as file:
        found = scan.read(file, log.name, False)
    assert [ENTRIES[hit.entry].code for hit in found.hits] == ["device-occupied", "data-workers-on-device"]
    assert "device-occupied" in next(entry for entry in ENTRIES if entry.code == "data-workers-on-device").leads_to


def test_memory_that_ends_while_a_checkpoint_is_loaded(tmp_path):
    log = tmp_path / "rank_0.log"
    log.write_text(
        'Traceback (most recent call last):\n  File "/x/t.py", line 3, in <module>\n    p = ms.load_checkpoint(path)\n'
        '  File "/x/serialization.py", line 9, in load_checkpoint\n    data = bytes(size)\nMemoryError\n'
    )
    scan.use(ENTRIES)
    with log.open("rb") as file:
        found = scan.read(file, log.name, False)
    assert [ENTRIES[hit.entry].code for hit in found.hits] == ["checkpoint-memory"]
