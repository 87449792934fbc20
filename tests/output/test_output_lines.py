"""What ranks print, as bytes: lines, redrawn lines, the end of a log."""

import os

import pytest

from tools.output import lines


@pytest.mark.parametrize(
    ("text", "redrawn"),
    [
        (b"", False),
        (b"a\nb", False),
        (b"a\r\nb\r\n", False),
        (b"a\r", False),
        (b"\r 1%", True),
        (b"a\r\r\n", True),
        (b"\x02\r 1%", False),
        (b"x" * 256 + b"\x02\r 1%", True),
        (b"\0\0\r 1%", True),
    ],
)
def test_redrawn_lines_are_known(text, redrawn):
    assert lines.is_redrawn(text) is redrawn


@pytest.mark.parametrize(
    ("text", "whole", "rest"),
    [
        (b"", [], b""),
        (b"a", [], b"a"),
        (b"a\n\nb", [b"a", b""], b"b"),
        (b"\n\n", [b"", b""], b""),
        (b"a\r\nb\r\n", [b"a", b"b"], b""),
        (b"\r 1%\r100%\n\r 2%", [b"100%"], b"\r 2%"),
        (b"100%\r    \n\r\n", [b"100%", b""], b""),
        (b"\r   \n", [b"   "], b""),
        (b"a\n\r", [b"a"], b"\r"),
    ],
)
def test_text_is_split_into_lines(text, whole, rest):
    assert lines.split(text) == (whole, rest)


@pytest.mark.parametrize(
    ("line", "state"),
    [
        (b"", b""),
        (b"a", b"a"),
        (b"\r 1%\r 2%", b" 2%"),
        (b"\r 2%\r", b" 2%"),
        (b"2%\r   \r  ", b"2%"),
        (b"\r\r  \r   ", b"  "),
        (b"\r\r", b""),
        (b"a\r" + b" " * 2000, b"a"),
    ],
)
def test_the_last_drawing_that_is_not_blank_counts(line, state):
    assert lines.state(line) == state


def test_no_character_is_cut():
    text = "x世界".encode()
    assert [lines.cut(text, most) for most in range(8)] == [b"", b"x", b"x", b"x", text[:4], text[:4], text[:4], text]
    assert lines.cut(b"\x80" * 9, 6) == b"\x80" * 3
    assert lines.cut(b"abc", 9) == b"abc"


# ---- the end of a log ------------------------------------------------------------------------------------------------


@pytest.fixture
def tail(tmp_path):
    """tail(TEXT): the last lines of a log with this text."""

    def of(text):
        (tmp_path / "log").write_bytes(text)
        return lines.tail(str(tmp_path / "log"))

    return of


def test_a_tail_has_the_last_states_without_colours(tail):
    assert tail(b"a\n" + b"".join(b"\r%8d%%" % n for n in range(100))) == [b"a", b"      99%"]
    assert tail(b"\x1b[31mred\x1b[0m\x1b[2J\n\0\xfe\n") == [b"red\x1b[2J", b"\xfe"]
    assert tail(b"\x1b[\x1b[31mm.") == [b"."]
    assert tail(b"") == []


def test_a_tail_bounds_lines_and_bytes_and_marks_what_it_cuts(tail):
    assert tail(b"".join(b"%d\n" % n for n in range(100))) == [b"%d" % n for n in range(85, 100)]
    assert tail(b"x" * 401 + b"\n" + b"x" * 400) == [b"x" * 400 + b" ...", b"x" * 400]
    assert tail(b"y" * 99999) == [b"... " + b"y" * 396 + b" ..."]
    assert tail("世".encode() * 200) == ["世".encode() * 133 + b" ..."]
    assert tail(b"\x1b[1m" * 401 + b"z") == [b" ..."]
    assert tail(b"a\n" * 8192)[0] == b"a"  # the whole file, so nothing is cut off


def test_a_tail_reads_files_only(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    for name in ("fifo", "link", "none", "."):
        assert lines.tail(str(tmp_path / name)) == []


def test_a_tail_of_a_huge_log_reads_its_end_only(tmp_path):
    with (tmp_path / "log").open("wb") as file:
        file.truncate(1 << 40)
        file.seek(0, os.SEEK_END)
        file.write(b"the end\n")
    assert lines.tail(str(tmp_path / "log")) == [b"... the end"]
