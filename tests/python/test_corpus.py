"""Real tables that were found in public repositories, against verdicts that a person gave them.

They are not part of the project: RANK_TABLE_CORPUS names their folder.  Its index.tsv has, among
others, the columns file, format, verdict and verdict_910 ("valid" or "invalid:...").
"""

import csv
import os
from pathlib import Path

import pytest

from hccl_tools import check

FOLDER = os.environ.get("RANK_TABLE_CORPUS")


def rows():
    if not FOLDER:
        return []
    with open(Path(FOLDER) / "index.tsv", encoding="utf-8", newline="") as file:
        table = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row for row in table if row["format"] in ("1.0", "not-json")]


def agrees(row, column, generation):
    _, problems = check.check_file(os.path.join(FOLDER, row["file"]), generation)
    assert ("invalid" if problems else "valid") == row[column].partition(":")[0], (row[column], problems)


@pytest.mark.skipif(not FOLDER, reason="RANK_TABLE_CORPUS does not name a folder of real rank tables")
def test_the_corpus_has_tables_of_ours():
    assert rows()


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["file"])
@pytest.mark.parametrize(("column", "generation"), [("verdict", None), ("verdict_910", "910A")])
def test_a_real_table_gets_the_verdict_of_the_index(row, column, generation):
    agrees(row, column, generation)
