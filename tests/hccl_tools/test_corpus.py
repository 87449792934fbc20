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
from hccl_tools.common.refusal import Refusal
from hccl_tools.compare import changes, side
from hccl_tools.convert import job, reading, writing
from hccl_tools.table import rank_table

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


def good_ones():
    return sorted({row["file"] for row, column, _ in cases() if column == "verdict" and row[column] == "valid"})


@pytest.mark.parametrize("file", good_ones())
@pytest.mark.parametrize("target", [name for name in writing.TARGETS.values() if name != job.HOSTS])
def test_a_real_table_means_the_same_in_another_format(file, target):
    data = Path(FOLDER, file).read_bytes()
    found, _ = reading.read(data, file)
    names = {"v1.1": "collective_id", "legacy_cloud": "group_name"}
    given = {names[target]: "x"} if target in names else {}
    try:
        table = writing.write(job.only(found.replace(head={**given, **found.head}), target)[0], target, target)
    except Refusal as refusal:
        assert "v2.0" in (found.source, target) or "needs" in refusal.lines[0]
        return
    if bad := problem.errors(verdict.check(table)):
        assert target in ("legacy_lab", "legacy_cloud") and {each.code for each in bad} == {
            "bad-value"
        }  # a device above 7
        return
    both = side.of(data, "a"), side.of(rank_table.dump(table).encode(), "b")
    compared = changes.compare(*both)
    expected = {"format", "server-renamed"} if found.source != target else set()
    assert {each.kind for each in compared.changes if each.data.get("key") != "group_name"} <= expected, (
        compared.changes
    )
