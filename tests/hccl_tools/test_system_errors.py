"""What a message says of an error of the system, in the user's language."""

import errno
import os

import pytest

from hccl_tools.common import language
from hccl_tools.common.language import strerror
from tools.pages.messages import OF_SYSTEM


@pytest.fixture
def chinese():
    language.use("zh")
    yield
    language.use("en")


def opened(path):
    with pytest.raises((OSError, ValueError)) as raised, open(path, encoding="utf-8") as file:
        file.read()
    return raised.value


def test_a_chinese_reader_gets_the_system_s_reason_in_chinese(chinese, tmp_path):
    assert strerror(opened(tmp_path / "none")) == "没有那个文件或目录"
    assert strerror(opened(tmp_path)) == "是一个目录"


def test_every_reason_of_the_catalogue_is_one_of_the_system_or_of_its_resolver():
    known = {os.strerror(number) for number in errno.errorcode}
    resolver = {
        "Name or service not known",
        "No address associated with hostname",
        "Temporary failure in name resolution",
    }
    assert set(OF_SYSTEM) - known == resolver


def test_a_reason_that_the_catalogue_has_not_stays_as_it_is(chinese):
    assert strerror(OSError(errno.EXFULL, "Exchange full")) == "Exchange full"


def test_an_error_without_a_reason_of_the_system_is_told_by_its_text_or_its_kind(tmp_path):
    assert strerror(opened("a\0b")) == "embedded null byte"
    assert strerror(TimeoutError()) == "TimeoutError"
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    assert strerror(opened(tmp_path / "binary")) == "it is not a text file"
