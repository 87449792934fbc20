"""What the benchmarks count in strace's log: the calls on the files in question, of all processes."""

import importlib.util
import subprocess

import pytest


@pytest.fixture
def opened(root):
    spec = importlib.util.spec_from_file_location("opened", root / "tests" / "bench" / "opened.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LOG = """\
12 openat(AT_FDCWD</home>, "/srv/a.py", O_RDONLY|O_CLOEXEC) = 3</srv/a.py>
12 openat(AT_FDCWD</home>, "/srv/b.py", O_RDONLY) = -1 ENOENT (No such file or directory)
13 open("/srv/c.so", O_RDONLY <unfinished ...>
12 read(3</srv/a.py>, ""..., 4096) = 1200
12 read(3</srv/a.py>, "", 4096) = 0
13 <... open resumed>) = 4</srv/c.so>
13 newfstatat(4</srv/c.so>, "", {st_mode=S_IFREG|0644, st_size=9, ...}, AT_EMPTY_PATH) = 0
13 read(4</srv/c.so>,  <unfinished ...>
14 read(5<socket:[99]>,  <unfinished ...>
14 <... read resumed>""..., 64) = 7
13 <... read resumed>""..., 832) = 100
12 openat(AT_FDCWD</home>, "/srv/d.py", O_RDONLY <unfinished ...>
12 <... openat resumed>) = -1 ENOENT (No such file or directory)
14 stat("/etc/open(", {st_mode=S_IFREG|0644, st_size=9, ...}) = 0
14 read(5<socket:[99]>, ""..., 64) = 64
14 pread64(6</etc/x>, ""..., 10, 0) = 10
"""


@pytest.mark.parametrize(("below", "found"), [("/srv/", (4, 2, 1, 3, 1300)), ("/", (4, 2, 2, 4, 1310))])
def test_calls_are_counted_once_and_only_those_below_the_folder(opened, tmp_path, below, found):
    out = tmp_path / "it's"
    pipe = opened.before(str(out), below)[-1]
    assert pipe.startswith("|")
    subprocess.run(["sh", "-c", pipe[1:]], input=LOG, text=True, check=True)
    assert opened.read(out) == opened.Calls(*found)
    assert opened.read(out) + opened.read(out) == opened.Calls(*(2 * number for number in found))


@pytest.mark.parametrize("text", ["", "1 2 3 4", "1 2 3 4 5", "awk: syntax error\n"])
def test_counts_that_were_not_all_written_are_none(opened, tmp_path, text):
    (tmp_path / "out").write_text(text)
    assert opened.read(tmp_path / "out") is None
    assert opened.read(tmp_path / "no such file") is None
