import errno
import json
import os
import resource
from contextlib import contextmanager, suppress

import pytest
from suite.cases import for_each

from hccl_tools.table import rank_table

# What MindSpore's hccl_tools.py writes for two devices, byte for byte.
UPSTREAM = """\
{
    "version": "1.0",
    "server_count": "1",
    "server_list": [
        {
            "server_id": "10.0.0.1",
            "device": [
                {
                    "device_id": "4",
                    "device_ip": "192.168.100.5",
                    "rank_id": "0"
                },
                {
                    "device_id": "5",
                    "device_ip": "192.168.101.5",
                    "rank_id": "1"
                }
            ],
            "host_nic_ip": "reserve"
        }
    ],
    "status": "completed"
}"""


@pytest.fixture
def old(tmp_path):
    """A table that is there already."""
    path = tmp_path / "table.json"
    path.write_text("old")
    return path


# ---- build, name, dump ---------------------------------------------------------------------------


def test_a_table_is_byte_for_byte_what_upstream_writes():
    built = rank_table.build([(4, "192.168.100.5"), (5, "192.168.101.5")], "10.0.0.1")
    assert rank_table.dump(built) == UPSTREAM


def test_ranks_count_from_0_in_the_order_of_the_devices_which_may_lack_an_address():
    assert rank_table.build([(5, None), (4, None)], "10.0.0.1")["server_list"][0]["device"] == [
        {"device_id": "5", "rank_id": "0"},
        {"device_id": "4", "rank_id": "1"},
    ]


def test_the_file_is_named_as_upstream_names_it():
    assert rank_table.file_name([4, 5, 6, 7], "127.0.0.1") == "hccl_4p_4567_127.0.0.1.json"


# ---- write ---------------------------------------------------------------------------------------


def test_write_makes_a_new_file_and_nothing_beside_it(tmp_path):
    rank_table.write("机", tmp_path / "table.json")
    assert (tmp_path / "table.json").read_bytes() == "机".encode()
    assert os.listdir(tmp_path) == ["table.json"]


def test_who_reads_the_old_table_during_a_write_reads_it_whole(old):
    with open(old, encoding="utf-8") as reader:
        rank_table.write("new", old)
        assert reader.read() == "old"
    assert old.read_text() == "new"


def test_write_follows_a_link_and_leaves_it_a_link_also_to_a_file_that_is_not_there_yet(tmp_path, old):
    folder = tmp_path / "links"
    folder.mkdir()
    for name in ("table.json", "new.json"):
        link = folder / f"to_{name}"
        link.symlink_to(f"../{name}")
        rank_table.write("new", link)
        assert link.is_symlink() and (tmp_path / name).read_text() == "new"
    assert sorted(os.listdir(folder)) == ["to_new.json", "to_table.json"]


@contextmanager
def largest_file(size):
    """Files of this process cannot grow beyond `size` bytes: a write that really fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_ends_half_way_leaves_the_old_table_whole(tmp_path, old):
    with pytest.raises(OSError) as failure, largest_file(100):
        rank_table.write("x" * 10000, old)
    assert failure.value.errno == errno.EFBIG
    assert old.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.json"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_whatever_ends_a_write_leaves_the_old_table_whole(tmp_path, old, monkeypatch, step, failure):
    def fail(*_):
        raise failure

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(failure)):
        rank_table.write("new", old)
    assert old.read_text() == "old"
    assert os.listdir(tmp_path) == ["table.json"]


def test_a_table_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    steps = []
    for step in ("fsync", "replace"):
        real = getattr(os, step)
        monkeypatch.setattr(os, step, lambda *args, step=step, real=real: (steps.append(step), real(*args)))
    rank_table.write("new", tmp_path / "table.json")
    assert steps == ["fsync", "replace"]


def test_a_draft_that_another_process_left_or_is_writing_is_not_touched(tmp_path):
    # Two containers can have the same process id and one folder.
    draft = tmp_path / f"table.json.{os.getpid()}.part"
    draft.write_text("of another")
    with suppress(FileExistsError):
        rank_table.write("new", tmp_path / "table.json")
    assert draft.read_text() == "of another"


def test_a_folder_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        rank_table.write("new", tmp_path / "none" / "table.json")


# ---- read ----------------------------------------------------------------------------------------


def test_what_was_written_is_read_back(tmp_path, table):
    rank_table.write(rank_table.dump(table(8)), tmp_path / "table.json")
    assert rank_table.read(tmp_path / "table.json") == (table(8), [])


@for_each(
    "data, text",
    [
        (b"", "the file is empty"),
        (b" \n\t", "the file is empty"),
        (b'{"a": "\xff"}', "byte 8 is not UTF-8"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (b'{\n  "a": "b", // c\n  "d": "e"}', "line 2, column 13: a comment"),
        (b'{\n  "a": "b" // c\n}', "line 2, column 12: a comment"),
        (b'/* c */ {"a": "b"}', "line 1, column 1: a comment"),
        (b'{"a": "b",}', "comma"),
        (b'["a",\n]', "comma"),
        (b'{"a": "b"', "line 1, column 10: the file ends here, in the middle of its JSON"),
        (b'{"a": "b"\n\n', "the file ends here, in the middle of its JSON"),
        (b'{"a": "b"\n"c"', "found "),
        (b'{"a" "b"}', 'found "b"}'),
        (b"{} {}", "found {}"),
        (b"{'a': 'b'}", "line 1, column 2"),
        (b"[" * 100000, "nested too deeply"),
        *((b'{"a": %b}' % number, "") for number in (b"NaN", b"Infinity", b"-Infinity")),
    ],
)
def test_what_is_not_json_is_one_problem_that_says_where(data, text):
    document, problems = rank_table.parse(data)
    assert document is None
    assert [(problem.code, problem.pointer) for problem in problems] == [("not-json", "")]
    assert text in problems[0].text


def test_a_number_of_very_many_digits_is_no_crash():
    document, problems = rank_table.parse(b"[" + b"9" * 100000 + b"]")
    assert (document is None) == bool(problems)


@pytest.mark.parametrize("data", [b'{"a": }', b'{"a": ["b"}', b'{"a"}'])
def test_a_bracket_that_follows_no_comma_is_not_blamed_on_one(data):
    _, problems = rank_table.parse(data)
    assert "a comma before" not in problems[0].text


@pytest.mark.parametrize("data", [b"null", b"3", b'"text"', b"[]", b"{}"])
def test_any_json_is_read_whether_a_table_or_not(data):
    assert rank_table.parse(data) == (json.loads(data), [])


@pytest.mark.parametrize(("name", "said"), [(".", "is a folder"), ("none.json", "No such file")])
def test_a_folder_or_a_file_that_is_not_there_cannot_be_read(tmp_path, name, said):
    with pytest.raises(rank_table.NotReadable, match=said):
        rank_table.read(tmp_path / name)


def test_a_file_much_larger_than_any_table_is_not_read(tmp_path):
    path = tmp_path / "huge.json"
    with open(path, "wb") as file:
        file.truncate(rank_table.MAX_BYTES + 1)  # a hole: takes no room
    with pytest.raises(rank_table.NotReadable, match="a rank table has at most"):
        rank_table.read(path)


# ---- servers -------------------------------------------------------------------------------------


def test_servers_keep_their_places_when_others_are_malformed(table):
    document = table(2, 2, edits={"/server_list/0": "junk", "/server_list/1/device/0": 3})
    (server,) = rank_table.servers(document)
    assert (server.pointer, server.server_id) == ("/server_list/1", "10.0.0.2")
    assert [device.pointer for device in server.devices] == ["/server_list/1/device/1"]


def test_fields_that_are_no_text_or_missing_are_empty(table):
    edits = {"/server_list/0/server_id": 1, "/server_list/0/device/0/rank_id": 0}
    (server,) = rank_table.servers(table(1, edits={**edits, "/server_list/0/device/0/device_ip": ...}))
    assert server.server_id == ""
    assert server.devices == [rank_table.Device("/server_list/0/device/0", "0", None, "")]


@pytest.mark.parametrize("junk", [None, 3, "text", [], {}, {"server_list": {}}, {"server_list": [None, []]}])
def test_junk_has_no_servers(junk):
    assert rank_table.servers(junk) == []
