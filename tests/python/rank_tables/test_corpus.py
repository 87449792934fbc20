"""Real tables that were found in public repositories, against verdicts that a person gave them.

They are not part of the project: RANK_TABLE_CORPUS names their folder.  Its index.tsv has, among
others, the columns file, format, verdict and verdict_910 ("valid", "invalid:..." or "n/a").
"""

import csv
import os
from pathlib import Path

import pytest

from hccl_tools.check import verdict
from hccl_tools.common import problem

FOLDER = os.environ.get("RANK_TABLE_CORPUS")

# (file, column): why the index is wrong and we are right
INDEX_IS_WRONG = {}


def cases():
    if not FOLDER:
        return []
    with open(Path(FOLDER) / "index.tsv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    columns = (("verdict", None), ("verdict_910", "910A"))
    return [(row, column, chip) for row in rows for column, chip in columns if row[column] != "n/a"]


@pytest.mark.skipif(not FOLDER, reason="RANK_TABLE_CORPUS does not name a folder of real rank tables")
def test_the_corpus_has_tables():
    assert cases()


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case[0]['file']}-{case[1]}")
def test_a_real_table_gets_the_verdict_of_the_index(case):
    row, column, generation = case
    if (row["file"], column) in INDEX_IS_WRONG:
        pytest.skip(INDEX_IS_WRONG[row["file"], column])
    _, found = verdict.check_file(os.path.join(FOLDER, row["file"]), generation)
    ours = "invalid" if problem.errors(found) else "valid"
    assert ours == row[column].partition(":")[0], (row[column], found)
