"""The exception that ended a rank, and logs with anything in them."""

import random
import subprocess
import sys

import pytest

from tools.logs import log_tail, sources


def log_of(root, name):
    return (root / "tests" / "fixtures" / "rank_logs" / f"{name}.log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "raised", "line", "known"),
    [
        ("invalid-backend", "RuntimeError: Invalid communication backend: CPU", 14, "invalid-backend"),
        ("dataset-missing", "ValueError: The folder /nonexistent/digits does not exist", 5, "dataset-missing"),
        ("operator-shapes", "RuntimeError: For 'MatMulExt' op, shape1[-1] must be", 12, ""),
        ("no-ascend-software", "RuntimeError: Unsupported device target Ascend", 14, "no-ascend-software"),
        ("no-gpu-software", "RuntimeError: Unsupported device target GPU", 3, "no-gpu-software"),
        ("data-function", "KeyError: 'label missing'", 21, "data-function-failed"),
        ("scheduler-timeout", "RuntimeError: Failed to initialize distributed job", 8, "scheduler-timeout"),
        ("port-in-use", "RuntimeError: Failed to initialize", 8, "port-in-use scheduler-timeout"),
        ("no-cluster-environment", "RuntimeError: Maybe you are trying to call", 8, "no-cluster-environment"),
        ("checkpoint-mismatch", "RuntimeError: For 'load_param_into_net'", 8, "checkpoint-mismatch"),
        ("checkpoint-torn", "ValueError: Failed to read the checkpoint file", 10, "checkpoint-torn"),
        ("old-mindspore-api", "ModuleNotFoundError: No module named 'mindspore.d", 12, "old-mindspore-api"),
        ("out-of-host-memory", "RuntimeError: Allocate memory failed", 22, "out-of-host-memory"),
    ],
)
def test_a_real_failure_of_mindspore(root, explained, name, raised, line, known):
    target = {"no-ascend-software": "Ascend", "no-gpu-software": "GPU"}.get(name, "CPU")
    out, diagnosis, codes = explained({"0": (1, log_of(root, name))}, target=target)
    assert out.startswith(f"rank 0 (device 0) failed first: {raised}")
    assert f", raised at /home/user/job/train.py:{line} in " in out.splitlines()[0]
    assert codes == known.split()
    assert "C++ Call Stack" not in out and "C++ Call Stack" not in diagnosis["exception"]["message"]


# --- exceptions -------------------------------------------------------------------------------------------------------


def last_exception_of(tmp_path, source):
    """What is read from the log of a process that runs `source`."""
    path, log = tmp_path / "trainer.py", tmp_path / "log"
    path.write_text(source)
    with log.open("w") as file:
        subprocess.run([sys.executable, str(path)], stderr=subprocess.STDOUT, stdout=file, timeout=300)
    return log_tail.last_exception(log_tail.read(str(log)).lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "kind", "message", "line"),
    [
        ("1 / 0\n", "ZeroDivisionError", "division by zero", 1),
        ("def f():\n    raise KeyError\nf()\n", "KeyError", "", 2),
        ("import json\n\njson.loads('{')\n", "json.decoder.JSONDecodeError", "Expecting property name", 3),
        ("import importlib\nimportlib.import_module('no_such_thing')\n", "ModuleNotFoundError", "No module", 2),
        ("try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError('later') from e\n", "ValueError", "later", 4),
        ("raise RuntimeError('first\\nsecond')\n", "RuntimeError", "first\nsecond", 1),
        ("def f():\n    f()\nf()\n", "RecursionError", "maximum recursion depth", 2),
        ("x = = 1\n", "SyntaxError", "invalid syntax", 1),
        (
            "import logging\ntry:\n    1 / 0\nexcept Exception:\n    logging.exception('x')\n",
            "ZeroDivisionError",
            "",
            3,
        ),
        (
            "class A:\n    def __del__(self):\n        raise OSError\na = A()\nraise ValueError('y')\n",
            "ValueError",
            "y",
            5,
        ),
    ],
)
def test_the_exception_that_python_prints(tmp_path, source, kind, message, line):
    found = last_exception_of(tmp_path, source)
    assert (found.type, found.line) == (kind, line)
    assert found.message.startswith(message)
    assert found.file.endswith("trainer.py")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups came with Python 3.11")
def test_an_exception_group_is_its_last_exception(tmp_path):
    source = "def f():\n    raise KeyError('k')\n"
    source += "try:\n    f()\nexcept KeyError as e:\n    raise ExceptionGroup('one', [e])\n"
    found = last_exception_of(tmp_path, source)
    assert (found.type, found.message, found.line) == ("KeyError", "'k'", 2)


def test_a_traceback_behind_another_programs_prefix():
    lines = ["[rank1]: Traceback (most recent call last):", '[rank1]:   File "a.py", line 3, in f', "[rank1]:     x"]
    lines += ["epoch 1", "[rank1]: ValueError: no", "[rank1]: more", "step 2"]
    found = log_tail.last_exception(lines)
    assert (found.type, found.message, found.file, found.line) == ("ValueError", "no\nmore", "a.py", 3)


@pytest.mark.parametrize(
    "other", ["[ERROR] DISTRIBUTED(1): x", "-" * 40, "", "Traceback (most recent call last):"], ids=len
)
def test_a_message_ends_where_other_lines_begin(other):
    lines = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', "ValueError: no", "more"]
    assert log_tail.last_exception([*lines, other, "y"]).message == "no\nmore"


RULE = "-" * 52


@pytest.mark.parametrize(
    ("first", "title", "message"),
    [
        ("", "Kernel error:", "Launch kernel failed: Default/AllGather-op1"),
        ("", "C++ Call Stack: (For framework developers)", ""),
        ("Refer to 'Dataset Pipeline Error Message'.", "Dataset Pipeline Error Message:", "[ERROR] no file: /data"),
        ("no shape", "Kernel error:", "x"),
    ],
    ids=len,
)
def test_a_message_of_mindspore_goes_on_in_the_section_that_it_refers_to(first, title, message):
    lines = ["Traceback (most recent call last):", '  File "a.py", line 3, in f', f"RuntimeError: {first}", "", RULE]
    found = log_tail.last_exception([*lines, f"- {title}", RULE, message or "mindspore/a.cc:7 Launch", "", "later"])
    told = "" if first == "no shape" else message.removeprefix("[ERROR] ")
    assert found.message == f"{first}\n{told}".strip()


CUT = [
    '  File "/home/user/train.py", line 41, in <module>',
    "    main()",
    '  File "/usr/lib/python3.11/site-packages/kit/load.py", line 3, in load',
    "    raise ConfigBroken(text)",
    "    ^^^^^^^^^^^^^^^^^^^^^^^^",
    "kit.errors.ConfigBroken: section optimizer has no rate",
]


@pytest.mark.parametrize("before", ["", "[rank3]: ", "2025-01-24 11:00:09 "])
@pytest.mark.parametrize("cut", [0, 1, 2])
def test_a_traceback_whose_first_lines_are_missing(before, cut):
    exception = log_tail.last_exception([before + line for line in ["epoch: 1", *CUT][cut:]])
    assert exception.text == "kit.errors.ConfigBroken: section optimizer has no rate"
    place = ("/home/user/train.py", 41, "<module>")
    own = place if cut < 2 else ("/usr/lib/python3.11/site-packages/kit/load.py", 3, "load")
    assert (exception.file, exception.line, exception.function, exception.row) == (*own, 6 - cut)


def test_an_unknown_failure_in_the_end_of_a_log(tmp_path):
    (tmp_path / "rank_0.log").write_text("\n".join(CUT[1:]))
    findings = sources.read([str(tmp_path)], []).findings
    assert findings[0].exception.text == CUT[-1]


@pytest.mark.parametrize(
    "lines",
    [
        ["Stack (most recent call last):", *CUT],  # what logging prints on request
        ["Exception ignored in: <function end>", "Traceback (most recent call last):", *CUT],
        [*CUT[:-1], "epoch: 1 step: 3, loss is 1.84"],
        [*CUT[:-1], "Note: the run goes on"],
        [*CUT[:-1], "", CUT[-1]],
        ["Current thread 0x7f (most recent call first):", '  File "train.py", line 3 in main', CUT[-1]],
    ],
)
def test_frames_without_an_exception_of_theirs(lines):
    assert log_tail.last_exception(lines) is None


def test_thousands_of_tracebacks_that_break_off_are_not_read_again_and_again(monkeypatch):
    lines = [" " * (number % 50) + "Traceback (most recent call last):" for number in range(5000)]
    tried = []
    frame = log_tail._FRAME
    counted = type("Counted", (), {"match": lambda _, line: tried.append(frame.match(line))})()
    monkeypatch.setattr(log_tail, "_FRAME", counted)
    assert log_tail.last_exception(lines) is None
    assert len(tried) < 2 * len(lines)


def test_an_exception_within_libraries_is_placed_in_them():
    library = "/opt/lib/python3.11/site-packages/x"
    lines = ["Traceback (most recent call last):", f'  File "{library}/a.py", line 1, in f']
    lines += [f'  File "{library}/b.py", line 2, in g', '  File "<frozen importlib>", line 3, in h', "KeyError: 1"]
    assert log_tail.last_exception(lines).line == 3


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python 3.9 does not know the names of its modules")
@pytest.mark.parametrize(
    ("importer", "file", "hides"),
    [
        ("/opt/lib/python3.11/multiprocessing/queues.py", "/job/queue.py", "queue"),
        ("/opt/lib/python3.11/site-packages/x/a.py", "/job/random.py", "random"),
        ("/opt/lib/python3.11/site-packages/x/a.py", "/job/plugin.py", ""),  # no name of Python's
        ("/job/train.py", "/job/queue.py", ""),  # the user's own import, who may mean it
        ("<frozen runpy>", "/job/code.py", ""),  # the program that was started
        ("/opt/lib/python3.11/importlib/__init__.py", "/job/configs/types.py", ""),  # configs.types
    ],
)
def test_a_file_that_a_library_imports_for_a_module_of_python_hides_it(importer, file, hides):
    lines = ["Traceback (most recent call last):", f'  File "{importer}", line 3, in <module>', "    import queue"]
    lines += [f'  File "{file}", line 5, in <module>', "    n = np.load(1)", "NameError: name 'np' is not defined"]
    assert log_tail.last_exception(lines).hides == hides
    lines.insert(-2, f'  File "{file}", line 9, in load')
    assert log_tail.last_exception(lines).hides == hides


@pytest.mark.skipif(sys.version_info < (3, 10), reason="Python 3.9 does not know the names of its modules")
def test_a_file_that_hides_a_module_is_named_with_the_remedy(explained):
    frames = ("train.py", "/opt/lib/python3.11/random.py", "/job/bisect.py")
    log = "".join(f'  File "{file}", line 5, in <module>\n    import x\n' for file in frames)
    out = explained({"0": (1, f"Traceback (most recent call last):\n{log}NameError: x\n")})[0]
    assert "raised at /job/bisect.py:5, a file that hides Python's own module bisect; rename it" in out


def test_the_code_of_a_traceback_is_no_event(explained):
    log = 'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    raise X("No space left on device")\n'
    assert explained({"0": (1, log + "    ^^^^^^^^\nX: y\n")})[2] == []


# --- odd logs ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("log", "told"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty: it ended before it wrote anything"),
        (b"\n\n", "is empty"),
        (random.Random(7).randbytes(70000), "no Python exception"),
        (b"\x00" * 1000, "is empty"),
        (b"Traceback (most recent call last):\n", "no Python exception"),
        (b'Traceback (most recent call last):\n  File "a.py", line 3, in f\n    half a li', "no Python exception"),
    ],
    ids=["missing", "empty", "blank", "junk", "zeros", "broken-off", "broken-off-later"],
)
def test_a_log_that_says_nothing(explained, log, told):
    out, diagnosis, _ = explained({"0": (5, log)})
    assert out.startswith("rank 0 (device 0) failed first: exit status 5; its log ") and told in out
    assert diagnosis == {"exception": None, "matches": []}


@pytest.mark.slow
@pytest.mark.parametrize(
    "log",
    [
        b"\x1b[31mOSError: No space \x1b[1mleft on device\x1b[0m\n",
        b"  1%|#\r 50%|##\rOSError: No space left on device\r\n",
        b"\xff\xfe\x00 No space left on device \x80\n",
        b"No space left on device",
        b"x\n" * 200000 + b"No space left on device\n",
        b"x" * 300000 + b"\nNo space left on device\n" + b"y" * 100000,
        "\ud800No space left on device\n".encode("utf-8", "surrogatepass"),
    ],
    ids=["colours", "bars", "junk", "no-newline", "long", "long-line", "surrogate"],
)
def test_a_log_with_colours_bars_junk_or_very_much(explained, log):
    assert explained({"0": (1, log)})[2] == ["no-space-left"]


def test_a_progress_bar_is_what_a_terminal_shows(tmp_path):
    (tmp_path / "log").write_bytes(b"  1%|#\r 50%|##\r100%|###\r\nnext\r\n 1%\r99%\r     \r\n")
    assert log_tail.read(str(tmp_path / "log")).lines == ["100%|###", "next", "99%"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "row", "place"), [("a\nb\n", 3, "rank_0.log:3"), ("a\n" * 200000, None, "rank_0.log")]
)
def test_lines_are_numbered_where_the_whole_log_was_read(explained, before, row, place):
    out, diagnosis, _ = explained({"0": (1, before + "No space left on device\n")})
    assert diagnosis["matches"][0]["row"] == row and place in out


def test_nothing_of_a_log_reaches_the_terminal_as_a_command(explained):
    out = explained({"0": (1, b"\x1b]0;title\x07\x1b[2J\x9b No space left on device\x08\n")})[0]
    assert all(character.isprintable() or character == "\n" for character in out)
