import hashlib

import pytest

from hccl_tools.commands import place_table
from hccl_tools.common.refusal import Refusal

TEXT = '{"version": "1.0"}'
DIGEST = hashlib.sha256(TEXT.encode()).hexdigest()


def test_a_table_is_put_where_nothing_was_with_its_folders(tmp_path):
    path = tmp_path / "logs" / "run" / "t.json"
    assert place_table.place(str(path), TEXT) == DIGEST
    assert path.read_text() == TEXT


def test_a_file_that_is_there_stays_and_its_own_digest_is_told(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("mine")
    assert place_table.place(str(path), TEXT) == hashlib.sha256(b"mine").hexdigest()
    assert path.read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refusal, match="the rank table cannot be written to .*/t.json: File exists"):
        place_table.place(str(tmp_path / "file" / "t.json"), TEXT)
