"""Crashes in native code, as faulthandler prints them."""

import io

import pytest

from tools.diagnosis import ends
from tools.logs import crash, log_tail, scan

DUMP = """\
epoch: 1 step: 3, loss is 1.84
Fatal Python error: Segmentation fault

Thread 0x00007f2a1b7fe701 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 88 in wait

Current thread 0x00007f2a1b7fe700 (most recent call first):
  File "/usr/lib/python3.11/site-packages/cv2/data.py", line 88 in imread
  File "/home/me/train.py", line 12 in load
  File "/home/me/train.py", line 40 in <module>

Extension modules: numpy.core._multiarray_umath, cv2 (total: 21)
Segmentation fault (core dumped)
""".splitlines()


@pytest.mark.parametrize("before", ["", "[rank3]: ", "2025-01-24 11:00:09 "])
def test_a_crash_is_placed_in_the_users_code(before):
    found = log_tail.last_exception([before + line if line else line for line in DUMP])
    assert (found.text, found.row) == ("Fatal Python error: Segmentation fault", 1)
    assert ends.raised_at(found) == "in cv2 (imread), called at /home/me/train.py:12 in load"


def test_a_crash_in_a_log():
    (found,) = scan.read_all(io.BytesIO("\n".join(DUMP).encode()), "rank_0.log", False)
    assert found.exception.within == "cv2 (imread)"


def test_a_crash_in_the_users_own_extension():
    found = crash.exception([line for line in DUMP if "cv2/" not in line])
    assert ends.raised_at(found) == "raised at /home/me/train.py:12 in load"


def test_what_is_raised_comes_before_a_crash_at_the_programs_end():
    traceback = ["Traceback (most recent call last):", '  File "a.py", line 3, in <module>', "    f()", "ValueError: 7"]
    assert log_tail.last_exception([*traceback, *DUMP[1:]]).text == "ValueError: 7"


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (DUMP[1], "Fatal Python error: Aborted"),  # a watchdog does so, too
        (DUMP[1], "Fatal Python error: init_fs_encoding: failed to get the Python codec"),
        (DUMP[6], "Current thread 0x00007f2a1b7fe700 (most recent call first):\n  <no Python frame>"),
        (DUMP[1], "a word of Fatal Python error: Segmentation fault"),
    ],
)
def test_what_is_not_a_crash_with_a_place(line, text):
    assert log_tail.last_exception("\n".join(DUMP).replace(line, text).splitlines()) is None
