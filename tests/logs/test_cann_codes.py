"""The first cause for the codes of CANN, in the wrappings of MindSpore, torch_npu, vLLM and plogs.

The numbers are those of CANN's public headers (acl/error_codes/rt_error_codes.h) and of its table of aclnn codes, the
texts those of its runtime (errcode_manage.cc) and of torch_npu (NPUErrorCodes.h).  The rest of the lines is ours.
"""

import pytest
from known import ENTRIES
from suite.cases import for_each, none

from tools.diagnosis import job_logs
from tools.logs import known_failures

PTA = "[ERROR] 2026-01-02-03:04:05 (PID:7, Device:1, RankID:-1) ERR00100 PTA call acl api failed\n"
IN_LOG = "\n        Rectify the fault based on the error information in the ascend log.\n"
RUNTIME = "[ERROR] RUNTIME(7,python):2026-01-02-03:04:05.006.007 [x.cc:1]8 "
AIVEC = (
    "EZ9999[PID: 7] (EZ9999): The error from device(chipId:0, dieId:0), there is an exception of {} error, core id is 3"
)

WRAPPINGS = (
    "Call rt api rtStreamSynchronize failed, ret: {}",
    "Sync stream error! Call aclrtSynchronizeStream failed, ret {}",
    "Memcpy failed, ret[{}]",
    "Task fail infos task_id: 3, stream_id: 2, tid: 7, device_id: 0, retcode: {} ( failed)",
    "Launch failed, return value: {}",
    "RuntimeError: f:x.ts:25 NPU function error: AclrtSynchronizeDeviceWithTimeout, error code is {}\n" + PTA,
    "RuntimeError: ACL stream synchronize failed, error code:{}",
    "(Worker_TP3 pid=7) ERROR [executor.py:6] [W NPUStream.cpp:382] NPU warning, error code is {}[Error]:",
    "wait for compute device to finish failed, runtime result = {}.[FUNC:ReportCallError][LINE:161]",
    RUNTIME + "rtStreamSynchronize:ErrCode={}, desc=[x], InnerCode=0x7150050",
    "[ERROR] aclrtSetDevice(0) failed: {} (main.cpp:1)",
    "[ERROR]  acl call failed, errorCode = {}",
    "run_prepared failed with code {}",
)
OF_NUMBER = {
    107001: "EE1001",
    107002: "cann-no-context",
    107003: "wrong-context",
    107017: "cann-invalid-argument",
    107020: "device-timeout",
    107022: "npu-force-stop",
    107030: "npu-graph-capture",
    207000: "cann-feature-unsupported",
    207001: "out-of-device-memory",
    207003: "device-overflow",
    207006: "device-not-permitted",
    207008: "runtime-ids-used-up",
    207018: "out-of-device-memory",
    500002: "acl-internal-error",
    507001: "ts-internal-error",
    507008: "chip-type-unknown",
    507010: "device-lost-heartbeat",
    507011: "model-execute-failed",
    507012: "device-report-timeout",
    507013: "device-copy-failed",
    507014: "aicore-timeout",
    507015: "aicore-exception",
    507017: "AISW_CANN_ERRMSG_Custom_01",
    507018: "aicpu-operator-failed",
    507019: "aicpu-no-response",
    507033: "device-open-failed",
    507034: "aicore-timeout",
    507035: "vector-core-exception",
    507046: "device-timeout",
    507053: "device-memory-ecc",
    507054: "device-memory-ecc",
    507056: "device-link-error",
    507057: "suspect-remote-error",
    507899: "driver-internal-error",
    507901: "hdc-disconnected",
    507904: "device-link-error",
}


@pytest.fixture
def said(tmp_path):
    """said(text): the codes of the known failures of a log with this text, the first cause first."""

    def explain(text):
        (tmp_path / "rank_0.log").write_text(f"epoch 1\n{text}\n", encoding="utf-8")
        return [fault.entry.code for fault in job_logs.of_paths([str(tmp_path)], ENTRIES).faults]

    return explain


@for_each("number", OF_NUMBER)
def test_a_number_is_known_in_every_wrapping(number):
    lines, of_line = [], []
    for wrapping in WRAPPINGS:
        text = [*wrapping.format(number).splitlines(), *["goes on"] * 9]  # more than may be one message
        lines += text
        of_line += [wrapping] * len(text)
    taken = [rows for entry, rows in known_failures.by_lines(ENTRIES, lines) if entry.code == OF_NUMBER[number]]
    none(set(WRAPPINGS) - {of_line[row] for rows in taken for row in rows}, "these do not lead to its rule")


@pytest.mark.slow
@for_each(
    "text, code",
    [
        # --- the special before the general, in one message
        (
            AIVEC.format("aivec") + "\nerrorStr: The DDR address of the MTE instruction is out of range.",
            "operator-out-of-bounds",
        ),
        (AIVEC.format("fftsplus aicore") + "\n" + PTA, "aicore-exception"),
        ("[Error]: The vector core execution is abnormal." + IN_LOG + "EH9999: Inner Error!", "vector-core-exception"),
        (
            "EH9999: Inner Error!\nrtDeviceSynchronize execute failed, reason=[vector core timeout][FUNC:x]",
            "aicore-timeout",
        ),
        (
            "NPU function error: SUSPECT REMOTE ERROR, error code is 507057\n" + AIVEC.format("aivec"),
            "vector-core-exception",
        ),
        (
            "copy_d2d:a.cpp:1 NPU function error: sync(copy_stream), error code is 507001\n" + PTA,
            "npu-expandable-segments",
        ),
        (
            "EZ9999: Inner Error!\nEZ9999: Cannot find bin of op Foo, integral key 0/1/|int64/ND/",
            "operator-kernels-missing",
        ),
        (
            "call aclnnCat failed, error code is 161002\n" + PTA + "AclNN_Parameter_Error(EZ1001): x",
            "aclnn-invalid-parameter",
        ),
        ("NPU function error: call aclnnFoo failed, error code is 561103\n" + PTA, "aclnn-inner-error"),
        (
            "NPU function error: f::AclSetCompileopt(a, b), error code is 500001\n" + PTA,
            "operator-compiler-not-started",
        ),
        (
            "EE8888: Inner Error!\nrtStreamCreate execute failed, reason=[feature not support]",
            "cann-feature-unsupported",
        ),
        ("EE8888: Inner Error!\nreason=[driver error:no stream resource]", "runtime-ids-used-up"),
        ("set device failed: 507033\nE30006: Failed to verify the OPP", "aicpu-package-rejected"),
        ("set device failed: 507033\n(E39009): Failed to connect the device.", "device-lost-heartbeat"),
        ("set device failed: 507033\n(EL0004): Failed to allocate memory.", "out-of-device-memory"),
        ("set device failed, ret 507033\nEL0015: The device access is invalid.", "device-not-permitted"),
        ("EJ0001: Failed to initialize the HCCP process.\nreason=[driver error:internal error]", "EJ0001"),
        (
            "E39999: Inner Error!\nAicpu kernel execute failed, fault kernel_name=GetNext, fault op_name=",
            "data-queue-timeout",
        ),
        ("(E30008): AI CPU operator execution timed out.\nerror code is 507017", "AISW_CANN_ERRMSG_Custom_01"),
        ("ret: 507011\nAicore kernel execute failed, device_id=0, fault kernel_name=add_1", "AISW_CANN_Runtime_032"),
        ("ParseType] Got unsupported acl datatype: -1\nret: 507011", "column-type"),
        # --- an argument is not a device
        (
            "EE1001: The argument is invalid.Reason: rtGetDevMsg execute failed, reason=[context pointer null]",
            "cann-no-context",
        ),
        (
            "EE1001: The argument is invalid.Reason: rtMalloc execute failed, deviceId=3, reason=[invalid value]",
            "cann-invalid-argument",
        ),
        ("EE1001: set drv device=8, valid device range is [0, 8)", "EE1001"),
        (
            "(EE1003): rtSetDevice failed because value 8 for parameter devId is invalid. Expected value: [0, 8).",
            "EE1001",
        ),
        # --- HCCL's ports and tables
        ("HCCL function error: HcclGetRootInfo(&id), error code is 11\nEJ0003: Failed to bind the IP port.", "EJ0003"),
        ("socket type[0], listen on ip[10.0.0.2] and specific port[16667] fail.", "EI0020"),
        ("socket type[2], listen on ip[10.0.0.2%eth0] and specific port[60000] fail.", "EI0019"),
        ("EI0004: The ranktable is invalid,Reason:[device id repeat for one server.]", "ranktable-device-twice"),
        ("E60011: In op[conv], the [stride] must in range [1, 63], actual is [64]", "operator-compile"),
        ("RuntimeError: ({'errCode': 'E80000', 'op_name': 'foo'}, 'x')", "operator-compile"),
        # --- MindIO
        (
            '    port = int(os.getenv("MS_TFT_PORT"))\nTypeError: int() argument must be a string, not',
            "mindio-port-not-set",
        ),
        ("ModuleNotFoundError: Module not found. Detail info No module named 'mindio_ttp'", "mindio-missing"),
        ("start controller failed, error:1", "mindio-controller-not-started"),
        ("start processor failed, error:1", "mindio-controller-unreachable"),
    ],
)
def test_what_says_why_comes_first(said, text, code):
    assert said(text)[:1] == [code]


def test_a_port_that_is_taken_names_the_variables_that_help():
    remedy = next(entry.remedy for entry in ENTRIES if entry.code == "EJ0003")
    for name in ("HCCL_IF_BASE_PORT", "HCCL_HOST_SOCKET_PORT_RANGE", "HCCL_NPU_SOCKET_PORT_RANGE"):
        assert name in remedy


@pytest.mark.parametrize(
    "line",
    [
        "epoch: 507011 step: 507035, loss is 2.3026",
        "total tokens 507018, best value: 107002, result = 207001",
        "rank 3 has pid 507033, uid 107000",
        "vocab_size: 100000, max value is 500000",
        "mindio not found, process-rescheduling checkpoint-saving DO NOT work!",
        "[WARNING] TTP high_availability_switch switch is off for 600s, destroy controller",
    ],
)
def test_numbers_that_are_no_codes_say_nothing(said, line):
    assert said(line) == []
