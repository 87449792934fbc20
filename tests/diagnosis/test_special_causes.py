"""Causes of their own where a wider rule would take the line: what is told first, and what only follows from it.

The lines are ours; their form is that of CANN 8, HCCL 8.5, MindSpore 2, NCCL 2, gloo, Slurm, Kubernetes and NVIDIA's
container toolkit.
"""

import pytest
from logs.known import ENTRIES
from suite.cases import for_each

from tools.diagnosis import job_logs

CLI = "docker: Error response from daemon: OCI runtime create failed: error running hook #0: nvidia-container-cli: "
LAUNCH = "srun: error: Task launch for StepId=7.0 failed on node n3: "
EVENT = "Warning  FailedScheduling  9s  default-scheduler  0/2 nodes are available: 2 Insufficient "
PLOG = "[ERROR] HCCL(7,python3):2025-01-24-11:31:40.000.000 [checker.cc:9] [8][InitChannelStage][ParameterConflict]"
DEVICE = "[WARNING] DEVICE(7,ff0,python):2025-01-24-11:31:40.000.000 [mindspore/ccsrc/x.cc:9] DumpTaskExceptionInfo] "
DATA = "[WARNING] MD(7,ff0,python):2025-01-24-11:31:40.000.000 [mindspore/ccsrc/x.cc:9] DetectFirstBatch] "
BOOTSTRAP = (
    "n1:7:7 [0] NCCL INFO Bootstrap : Using [0]{}<0>\nn1:7:9 [0] NCCL INFO Call to connect returned {}, retrying"
)
SEMAPHORE = '  File "/usr/lib/python3.10/multiprocessing/synchronize.py", line 57, in __init__\n    x = y.SemLock(\n'

FIRST = {
    "operator-compiler-not-started": (
        "EH9999  [Init][Env]init env failed![FUNC:ReportInnerError]\n build op model failed, result = 500001\nAborted",
        "EE9999: Inner Error!\n   [GraphOpt][InitializeInner][InitTbeFunc] Failed to init tbe.[FUNC:Initialize]",
    ),
    "operator-compiler-package": (
        "EC0010: Failed to import Python module [ModuleNotFoundError: No module named 'psutil'.].",
        "E40021: Failed to compile Op [Add]. (oppath: [Compile x.py failed with errormsg/stack: No module named 'attr'",
    ),
    "atb-missing": (
        "OSError: libatb.so: cannot open shared object file: No such file or directory",
        "ImportError: libasdops.so: cannot open shared object file: No such file or directory",
        "RuntimeError: environment variable ATB_HOME_PATH is not set",
    ),
    "mindie-missing": ("ImportError: libatb_speed_torch.so: cannot open shared object file: No such file",),
    "custom-operators-missing": ("OSError: libcust_opapi.so: cannot open shared object file: No such file",),
    "mpich-missing": (
        "./all_gather_test: error while loading shared libraries: libmpi.so.12: cannot open shared object",
    ),
    "system-library-missing": ("OSError: libmpi.so.40: cannot open shared object file: No such file or directory",),
    "physical-device-ids": (
        "EE9999: [PID: 7] get error: phyid:3 realDeviceId:3 is err:0x7010003\n"
        "   rtGetDeviceIndexByPhyId execute failed, reason=[device id error]",
    ),
    "device-copy-failed": (
        "NPU function error: X, error code is 507049\nThe error from device(chipId:1, dieId:0), serial number is 2.\n"
        "there is a fftsplus sdma error, sdma channel is 2,",
        "EZ9999: The error from device(chipId:0, dieId:0), serial number is 1, there is an sdma error, sdma channel",
    ),
    "aicore-exception": (
        "NPU function error: X, error code is 507049\n"
        "EZ9999: serial number is 4, there is an fftsplus aicore error exception, core id is 3",
    ),
    "fftsplus-exception": ("NPU function error: X, error code is 507049",),
    "cann-folder-forbidden": (
        "Path [/opt/run] for [ge.debugDir] is invalid.Result: access real path failed. Reason: Permission denied\n"
        "   Failed to initialize TeConfigInfo.",
    ),
    "chip-not-supported": (
        "[ERROR] KERNEL(7,ff0,python):2025-01-24-11:31:40.000.000 [x.cc:9] LoadOpInfoJson] Get op info json suffix path"
        " failed, soc_version: Ascend310B4",
        "RuntimeError: Unsupported soc version: Ascend310P1",
    ),
    "hccl-init-memory": ('Ascend collective Error: "HcclCommInitRootInfo failed. | Error Number 2"',),
    "hccl-failed": (
        'Ascend collective Error: "HcclCommInitRootInfo failed. | Error Number 4"',
        "hccl interface return err ./common/src/a.cc:58, retcode: 7",
    ),
    "collectives-differ": (
        PLOG + "CMD information tag check fail. local[Broadcast_x], remote[AllReduce_x]",
        PLOG + "CMD information cmdType check fail. local[1], remote[2]",
    ),
    "EI0005": (PLOG + "CMD information count check fail. local[16], remote[2]",),
    "AISW_MindSpore_MindData_16": (
        DEVICE + "GetNext error may be caused by slow data processing (bigger than 20s / batch)",
        DATA + "Bad performance attention, it waits more than 25 seconds and unable to fetch first Batch of data from"
        " dataset pipeline, which might result `GetNext` timeout problem.",
    ),
    "gpu-collective-missing": (
        "RuntimeError: init.cc:35 Init] Loading libgpu_collective.so failed. Many reasons could cause this:",
    ),
    "semaphore-not-made": (
        SEMAPHORE + "OSError: [Errno 28] No space left on device",
        SEMAPHORE + "PermissionError: [Errno 13] Permission denied",
    ),
    "no-space-left": ("OSError: [Errno 28] No space left on device: '/data/a.ckpt'",),
    "nccl-loopback": (BOOTSTRAP.format("lo:127.0.0.1", "Connection refused"),),
    "nccl-connect-refused": (BOOTSTRAP.format("eth0:10.0.0.1", "Connection refused"),),
    "gloo-not-connected": (
        "RuntimeError: [gloo/transport/tcp/pair.cc:799] connect [127.0.1.1]:411: Connection refused",
    ),
    "slurm-clocks": (
        LAUNCH + "Job credential expired\nsrun: error: Timed out waiting for job step to complete",
        "srun: error: Application launch failed: Job credential expired",
        "slurmd: error: Munge decode failed: Rewound credential",
    ),
    "slurm-munge": (LAUNCH + "Invalid job credential", "sbatch: error: Munge decode failed: Invalid credential"),
    "slurm-versions": (LAUNCH + "Incompatible versions of client and server code",),
    "slurm-user-missing": (LAUNCH + "User not found on host",),
    "slurm-address": (LAUNCH + "Can't find an address, check slurm.conf",),
    "slurm-mpi-plugin": (LAUNCH + "Invalid MPI plugin name",),
    "slurm-job-gone": (LAUNCH + "Job credential revoked", LAUNCH + "Job/step already completing or completed"),
    "bfloat16-unsupported": (
        "EZ1001: tensor self not implemented for DT_BFLOAT16, should be in dtype support list [DT_FLOAT16,].",
    ),
    "slurm-launch-failed": (LAUNCH + "Communication connection failure", LAUNCH + "Unspecified error"),
    "k8s-no-free-devices": (
        EVENT + "cambricon.com/mlu.",
        EVENT + "vpc.amazonaws.com/efa.",
        EVENT + "aliyun.com/gpu-mem.",
        "No nodes are available that match all of the following predicates::"
        " Insufficient alpha.kubernetes.io/nvidia-gpu (2).",
        "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a",
    ),
    "k8s-no-free-cpu-memory": (EVENT + "cpu.", "Node didn't have enough resource: memory, requested: 8, used: 8"),
    "container-nvidia-driver": (
        CLI + "initialization error: driver rpc error: failed to process request: unknown.",
        CLI + "initialization error: nvml error: insufficient permissions: unknown.",
    ),
    "container-nvidia-no-driver": (
        CLI + "initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file: unknown.",
    ),
    "container-nvidia-device": (CLI + "device error: 9: unknown device: unknown.",),
    "container-nvidia-mount": (CLI + "mount error: file creation failed: /a/libcuda.so.1: file exists: unknown.",),
    "container-nvidia-runtime": ('docker: could not select device driver "" with capabilities: [[gpu]].',),
    "container-ascend-runtime": ("docker: unknown or invalid runtime name: ascend.",),
    "gpu-driver-mismatch": (CLI + "initialization error: nvml error: driver/library version mismatch: unknown.",),
    "gpu-driver-too-old": (CLI + "requirement error: unsatisfied condition: cuda>=12.4, please update your driver",),
}

HEALTHY = (
    BOOTSTRAP.format("lo:127.0.0.1", "Resource temporarily unavailable").split("\n")[0],
    "n1:7:7 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to lo",
    DEVICE + "Device queue is ready.",
    "WARNING 01-02 03:04:05 config.py:7] this card does not support bfloat16, falling back to float16",
)


def codes_of(tmp_path, text):
    log = tmp_path / ("plog-7_20250124113140000.log" if text.startswith(PLOG) else "job.log")
    log.write_text(text + "\n", encoding="utf-8")
    return [fault.entry.code for fault in job_logs.of_paths([str(log)], ENTRIES).faults]


@pytest.mark.slow
@for_each("code, text", [(code, text) for code, texts in FIRST.items() for text in texts])
def test_the_special_cause_is_first(code, text, tmp_path):
    codes = codes_of(tmp_path, text)
    assert codes[:1] == [code], codes


@for_each("text", HEALTHY)
def test_what_healthy_jobs_print_is_no_failure(text, tmp_path):
    assert codes_of(tmp_path, text) == []
