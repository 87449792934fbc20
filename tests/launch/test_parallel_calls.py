"""A program that asks MindSpore to cut its network, where MindSpore does not, is refused before it starts."""

import pytest
from launching import refusal_of

from tools.launch.programs import program_calls

AUTO = 'ms.set_auto_parallel_context(parallel_mode="auto_parallel")'
SEMI = "context.set_auto_parallel_context(gradients_mean=True, parallel_mode=ParallelMode.SEMI_AUTO_PARALLEL)"
DATA = "ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.DATA_PARALLEL)"
GRAPH = "ms.set_context(mode=ms.GRAPH_MODE)"
PYNATIVE = "ms.set_context(mode=ms.PYNATIVE_MODE)"


@pytest.fixture
def said(world):
    """said("CPU", line, line): why a program of these lines is refused; empty if it is not."""

    return lambda target, *lines: refusal_of(program_calls.check_parallel, world, target, lines)


@pytest.mark.parametrize(("line", "mode"), [(AUTO, "auto_parallel"), (SEMI, "semi_auto_parallel")])
@pytest.mark.parametrize("context", [[], [GRAPH]])
def test_what_cpu_does_not_cut_is_refused_there_only(said, line, mode, context):
    assert said("Ascend", *context, line) == said("GPU", *context, line) == ""
    text = said("CPU", *context, line)
    assert text.startswith(f"net.py:{2 + len(context)}: {mode} does not run on CPU: ")
    assert "; use data_parallel, or cut the layers by hand" in text


@pytest.mark.parametrize("line", [AUTO, SEMI])
@pytest.mark.parametrize("target", ["Ascend", "GPU", "CPU"])
@pytest.mark.parametrize("context", [PYNATIVE, "ms.set_context(mode=1)"])
def test_what_pynative_mode_does_not_cut_is_refused_everywhere(said, line, target, context):
    assert said(target, context, line).startswith(
        "net.py:3: MindSpore cuts a graph, which PyNative mode does not have: with "
    )


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [DATA],
        [f"# {AUTO}"],
        [AUTO, DATA],  # it may choose
        ["if on_npu:", f"    {AUTO}"],
        ["try:", f"    {AUTO}", "finally:", "    pass"],
        ["ms.set_auto_parallel_context(parallel_mode=args.auto_parallel)"],
        ["ms.set_auto_parallel_context(**auto_parallel)"],
        ["auto_parallel = ("],  # Python will say so
        ["auto_parallel = '\x00'"],
        [f"auto_parallel = {'(' * 2000}{')' * 2000}"],
    ],
)
def test_what_need_not_be_so_is_not_judged(said, lines):
    assert said("CPU", *lines) == ""


def test_where_the_call_is_makes_no_difference(said):
    assert said("CPU", "def main():", f"    {AUTO}").startswith("net.py:3: ")
    assert said("CPU", 'if __name__ == "__main__":', f"    {AUTO}").startswith("net.py:3: ")


def test_what_python_warns_of_is_left_to_python(said):
    assert said("CPU", r"number = '\d'", AUTO).startswith("net.py:3: ")


def test_both_modes_of_execution_or_a_function_for_pynative_mode_are_not_judged(said):
    assert said("Ascend", GRAPH, PYNATIVE, AUTO) == ""
    assert said("Ascend", PYNATIVE, AUTO, "net = ms.shard(net, in_strategy=((1, 2),))") == ""


def test_a_file_that_is_not_there_is_left_to_other_checks(world):
    program_calls.check_parallel("no.py", "CPU")
