"""A program that asks for NPUs or GPUs by itself is refused in a launch on CPU, where MindSpore would not take it."""

import pytest
from launching import refusal_of

from tools.launch.programs import program_calls

GPU = 'ms.set_context(mode=ms.GRAPH_MODE, device_target="GPU")'
ASCEND = "context.set_context(device_target='Ascend')"


@pytest.fixture
def said(world):
    """said("CPU", line, line): why a program of these lines is refused; empty if it is not."""

    return lambda target, *lines: refusal_of(program_calls.check_target, world, target, lines)


@pytest.mark.parametrize(
    ("line", "target"), [(GPU, "GPU"), (ASCEND, "Ascend"), ('ms.set_device("Ascend", 0)', "Ascend")]
)
def test_another_hardware_is_refused_on_cpu_only(said, line, target):
    assert said("Ascend", line) == said("GPU", line) == ""
    text = said("CPU", "def main():", f"    {line}")
    assert text.startswith(f'net.py:3: the program itself asks for device_target "{target}", but this launch is on CPU')
    assert text.endswith("; --no_check starts the program all the same")


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [f"# {GPU}"],
        ['ms.set_context(device_target="CPU")'],
        ["ms.set_context(device_target=args.device_target)", 'other(device_target="GPU")'],
        ["if on_npu:", f"    {ASCEND}"],
        ["if on_npu:", f"    {ASCEND}", "else:", '    ms.set_context(device_target="CPU")'],
        [ASCEND, "ms.set_context(device_target=found())"],  # the second one counts
        ['parser.add_argument("--device_target", default="Ascend")'],
        [f"{GPU} ("],  # Python will say so
    ],
)
def test_what_need_not_be_so_is_not_judged(said, lines):
    assert said("CPU", *lines) == ""
