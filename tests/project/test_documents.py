"""Every command in the documents does and prints what they say; see documents.py and CONTRIBUTING.md."""

import re
import subprocess

import documents
import documents_output
import pytest
from documents_world import World
from suite.cases import for_each, none

ENGLISH = [page for page in documents.pages() if not documents.is_chinese(page)]
CHINESE = [page for page in documents.pages() if page not in ENGLISH]
_FOR_DEVELOPERS = ("architecture", "benchmarks", "borders", "extending", "modules")
ENGLISH_ONLY = {"CONTRIBUTING.md", *map("docs/{}.md".format, _FOR_DEVELOPERS)}


def blocks(page):
    """The page's blocks; a bad mark fails the test."""
    try:
        return documents.blocks(page, documents.read(page))
    except documents.BadMark as error:
        return pytest.fail(str(error), pytrace=False)


@pytest.fixture
def copy():
    """A throw-away copy of the project."""
    found = World()
    yield found
    found.close()


@pytest.fixture(scope="module")
def files():
    """The paths of all files of the project."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return set(subprocess.run(listed, cwd=documents.ROOT, capture_output=True, text=True, check=True).stdout.split())


def marked(page):
    """The page, with the mark mpirun where a block needs it, or the hosts on which it starts ranks."""
    uses = re.search(r"^<!-- run.* (need=mpirun|on=lab)\b", documents.read(page), re.M)
    return pytest.param(page, marks=[pytest.mark.mpirun] if uses else [])


@pytest.mark.thorough
@pytest.mark.parametrize("page", [marked(page) for page in ENGLISH])
def test_what_a_page_tells_to_type_works_and_prints_what_it_shows(page, subtests, request):
    found = blocks(page)
    if not any(block.verb == "run" for block in found):
        pytest.skip("nothing in this page can be run here")
    world = request.getfixturevalue("copy")
    for block in found:
        with subtests.test(msg=block.place):
            problem = world.play(block)
            if problem:
                pytest.fail(problem, pytrace=False)


@pytest.mark.slow
@for_each("page", [page for page in ENGLISH if page not in ENGLISH_ONLY])
def test_the_chinese_page_has_the_same_blocks(page):
    assert documents.in_chinese(page) in CHINESE, f"{page} has no Chinese page"
    english, chinese = blocks(page), blocks(documents.in_chinese(page))
    for one, other in zip(english, chinese):
        assert documents.same_in_chinese(one) == documents.same_in_chinese(other), f"{one.place} and {other.place}"
    assert len(english) == len(chinese), f"{page} and {documents.in_chinese(page)}: one has more blocks than the other"


def test_every_chinese_page_has_an_english_one():
    assert set(CHINESE) <= {documents.in_chinese(page) for page in ENGLISH}


@pytest.mark.slow
@for_each("page", documents.pages)
def test_every_link_leads_somewhere(page, files):
    none(
        f"{page}:{line}: ({address}) {problem}"
        for line, address in documents.links(documents.read(page))
        if (problem := documents.broken_link(page, address, files))
    )


# ---- the helper itself -----------------------------------------------------------------------------


def page_of(*lines):
    return documents.blocks("page.md", "\n".join(lines) + "\n")


def test_a_block_is_read_with_its_place_and_its_options_also_in_a_list():
    (block,) = page_of("# Title", "", '<!-- run on=npu exit=78 do="1: exit 3" -->', "```bash", "true", "```")
    assert (block.place, block.text, block.verb) == ("page.md:5", "true\n", "run")
    assert (block.options["on"], block.options["exit"], block.options["do"]) == ("npu", 78, "1: exit 3")
    (block,) = page_of("1. Do:", "", "   <!-- run -->", "   ```bash", "   true", "   ```")
    assert (block.verb, block.text) == ("run", "true\n")


@pytest.mark.parametrize(
    ("mark", "language", "complaint"),
    [
        ("", "bash", "no mark"),
        ("<!-- runs -->", "bash", "is not a mark"),
        ("<!-- run fast -->", "bash", "fast is not an option of run"),
        ("<!-- run exit=two -->", "bash", "a number is expected"),
        ("<!-- run on=moon -->", "bash", "on=moon is none of"),
        ("<!-- run -->", "text", "is written in bash"),
        ("<!-- run -->", "", "is written in bash"),
        ("<!-- not run -->", "bash", "must say why"),
        ("<!-- output of hardware: -->", "text", "must say why"),
        ("<!-- prints -->", "text", "no <!-- run --> directly before"),
        ("<!-- file ../x.txt -->", "text", "takes one name"),
        ("<!-- file x.json -->", "json", "this must be x.json"),
        ("<!-- from no/such.py -->", "python", "takes the name of a file"),
        ("<!-- from ../etc/passwd -->", "text", "takes the name of a file"),
        ("<!-- from Makefile -->", "text", "these lines are not in Makefile"),
        ("<!-- not run: a drawing -->", "", "is written in a language"),
    ],
)
def test_a_mark_that_means_nothing_is_refused(mark, language, complaint):
    with pytest.raises(documents.BadMark, match=complaint) as refused:
        page_of(mark, f"```{language}", "text", "```")
    assert str(refused.value).startswith("page.md:3: ")


def test_a_listing_is_a_file_or_some_lines_of_one():
    lines = documents.read("LICENSE").splitlines()
    for some in (lines, lines[1:3]):
        (block,) = page_of("<!-- from LICENSE -->", "```text", *some, "```")
        assert (block.verb, block.word) == ("from", "LICENSE")
    old = f"<!-- from LICENSE -->\n```text\n{lines[0]}\nof last year\n```\n"
    assert documents.with_new_listings(old) == old.replace(f"{lines[0]}\nof last year\n", documents.read("LICENSE"))
    part = f"<!-- from LICENSE -->\n```text\n{lines[2]}\n```\n"
    assert documents.with_new_listings(part) == part


def test_a_block_by_indentation_is_refused():
    with pytest.raises(documents.BadMark, match="page.md:3: a block by indentation"):
        page_of("Text:", "", "    true")


RUN, OTHER = "x-20260131T120000Z-1", "x-20271231T235959Z-9"


def shows(*lines, verb="prints"):
    return page_of("<!-- run -->", "```bash", "x", "```", f"<!-- {verb} -->", "```text", *lines, "```")[1]


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (["a", "b"], "a\nb\n"),
        (["a", "...", "d"], "a\nb\nc\nd\n"),
        (["...", "b"], "a\nb\na\nb\n"),
        (["a", "..."], "a\n"),
        (["logs/x-20260131T120000Z-4711/rank_0.log  12.4 s"], "logs/x-20271231T235959Z-1/rank_0.log   1.0 s\n"),
        (["port 10001, sha256 0123456789ab"], "port 29999, sha256 fedcba987654\n"),
    ],
)
def test_what_is_printed_is_what_is_shown(shown, printed):
    assert documents_output.difference(shows(*shown), printed) is None


@pytest.mark.parametrize(
    ("shown", "printed", "complaint"),
    [
        (["a", "b"], "a\nc\n", "shown: b\nprinted: c"),
        (["a", "b"], "a\n", "printed: nothing more"),
        (["a"], "a\nb\n", "more is printed than is shown, from: b"),
        (["a", "...", "c"], "a\nb\n", "not printed from here on: c"),
        (["...", "b"], "b\na\n", "not printed like this"),
        (["...", "a", "b", "..."], "a\nx\nb\n", "not printed like this"),
        (["exit 3"], "exit 4\n", "shown: exit 3"),
        (["2 ranks"], "3 ranks\n", "shown: 2 ranks"),
    ],
)
def test_what_is_not_printed_is_found(shown, printed, complaint):
    assert complaint in documents_output.difference(shows(*shown), printed)


def test_loosely_lines_occur_in_that_order():
    assert documents_output.difference(shows("a", "c", verb="prints loosely"), "x\na\nb\nc\ny\n") is None
    difference = documents_output.difference(shows("c", "a", verb="prints loosely"), "a\nb\nc\n")
    assert "not printed from here on: a" in difference


@pytest.mark.parametrize(
    ("shown", "printed", "text"),
    [
        (["a is 1", "b is 2"], "a is 1\nb was 3\n", ["a is 1", "b was 3"]),
        (["a", "b"], "a\n", ["a"]),
        (["a", "b"], "a\nnew\nb\n", ["a", "new", "b"]),
        (["a", "...", "the end is 1"], "a\nx\ny\nthe end was 2\n", ["a", "...", "the end was 2"]),
        (["...", "ran 2 jobs here", "..."], "x\nran 2 ranks here\ny\n", ["...", "ran 2 ranks here", "..."]),
        (["took 1.0 s", "1 after 2.0 s"], "took 9.0 s\n2 after 8.0 s\n", ["took 1.0 s", "2 after 2.0 s"]),
        ([f"run {RUN}", f"all in {RUN}"], f"run {OTHER}\nall are in {OTHER}\n", [f"run {RUN}", f"all are in {RUN}"]),
        (["...", "gone", "..."], "something else\n", None),
        (["...", "gone"], "", None),
    ],
)
def test_a_block_is_brought_up_to_date(shown, printed, text):
    new = documents_output.updated(shows(*shown), printed, {})
    assert new == (None if text is None else "".join(f"{line}\n" for line in text))


def test_a_loose_block_is_brought_up_to_date():
    block = shows("a", "it was stopped by us", verb="prints loosely")
    assert documents_output.updated(block, "a\nb\nit was stopped by signal\n", {}) == "a\nit was stopped by signal\n"
    assert documents_output.updated(block, "a\nb\n", {}) is None


@pytest.mark.thorough
def test_a_page_and_its_chinese_page_are_brought_up_to_date(tmp_path, monkeypatch, capsys):
    command = "- List:\n\n  <!-- run -->\n  ```bash\n  echo new; echo text\n  ```\n"
    page = f"{command}\n  <!-- prints -->\n  ```text\n  old\n  text\n  ```\n"
    (tmp_path / "docs" / "zh").mkdir(parents=True)
    for name in ("docs/x.md", "docs/zh/x.md"):
        (tmp_path / name).write_text(page)
    monkeypatch.setattr(documents, "ROOT", tmp_path)
    assert documents.update("docs/x.md")
    for name in ("docs/x.md", "docs/zh/x.md"):
        assert (tmp_path / name).read_text() == page.replace("  old\n", "  new\n")
    assert capsys.readouterr().out == "docs/x.md:10: updated\ndocs/zh/x.md:10: updated\n"


def test_the_chinese_block_may_have_other_comments_only():
    lines = ("ls # files", "ls # 文件", "ls -l")
    one, other, third = (page_of("<!-- run -->", "```bash", line, "```")[0] for line in lines)
    assert documents.same_in_chinese(one) == documents.same_in_chinese(other) != documents.same_in_chinese(third)


def test_the_anchors_are_those_of_code_hosts():
    text = "# A `b-c`: d!\n\n## 环境变量（全部）\n\n## Twice\n\n## Twice\n"
    assert documents.anchors(text) == {"a-b-c-d", "环境变量全部", "twice", "twice-1"}


def test_a_link_to_nowhere_is_found(files):
    assert documents.broken_link("docs/x.md", "../README.md", files) is None
    assert documents.broken_link("docs/x.md", "https://example.org/y.md", files) is None
    assert documents.broken_link("docs/x.md", "README.md", files) == "docs/README.md does not exist"
    assert documents.broken_link("docs/x.md", "../README.md#nowhere", files) == "README.md has no heading #nowhere"
    assert list(documents.links("see [a](b.md#c) and ![d](e.svg)\n")) == [(1, "b.md#c"), (1, "e.svg")]


def run_in(world, *lines):
    (block,) = page_of(*lines)
    return world.run(block)


@pytest.mark.slow
def test_the_copy_is_the_users_project_and_the_next_page_finds_it_as_it_was():
    changes = [
        "pwd; rm -r README.md .venv; echo more >>Makefile; chmod -x scripts/run.sh",
        "mkdir -p logs configs/new own/__pycache__; touch logs/x configs/new/y own/__pycache__/x.pyc data/z ~/left",
        "git -c user.name=me -c user.email=me commit -qam changed; false",
        "echo not reached",
    ]
    world = World()
    code, output = run_in(world, "<!-- run -->", "```bash", *changes, "```")
    assert (code, output) == (1, "/home/me/project\n")
    assert (documents.ROOT / "README.md").exists()
    world.close()
    world = World()
    code, output = run_in(world, "<!-- run -->", "```bash", "git status --short; ls README.md .venv/bin/python", "```")
    assert (code, output) == (0, ".venv/bin/python\nREADME.md\n")
    assert sorted(path.name for path in world.home.iterdir()) == [".local", "project"]  # mslaunch is in .local
    assert not any((world.folder / name).exists() for name in ("logs", "configs/new", "own", "data/z"))
    assert "more" not in (world.folder / "Makefile").read_text().splitlines()
    world.close()


@pytest.mark.slow
def test_the_pretended_npus_and_the_stub_trainer(copy):
    mark, command = '<!-- run on=npu exit=3 do="1: exit 3; 0: wait" -->', "bash scripts/ascend2p.sh"
    code, output = run_in(copy, mark, "```bash", f"{command} configs/mnist/lenet5_mnist.yaml", "```")
    assert code == 3 and "rank 1 (device 1) exited with code 3" in output, output
    assert (copy.folder / "tools/train.py").read_bytes() == (documents.ROOT / "tools/train.py").read_bytes()


@pytest.mark.slow
def test_a_lab_has_two_hosts(copy):
    code, output = run_in(copy, "<!-- run on=lab host=1 -->", "```bash", "ssh node0 hostname; hostname", "```")
    assert (code, output) == (0, "node0\nnode1\n")


def test_a_file_block_is_written_into_the_copy(copy):
    (block,) = page_of("<!-- file deep/x.yaml -->", "```yaml", "a: 1", "```")
    copy.write(block)
    assert (copy.folder / "deep/x.yaml").read_text() == "a: 1\n"


NEEDS = ("<!-- run need=no-such-program -->", "```bash", "make-it >made.json", "```")
READS = ("<!-- run exit=3 -->", "```bash", "test -e made.json || exit 1; exit 3", "```")


def played(world, *lines):
    """What becomes of each block: None, what is wrong, or why it was skipped."""
    for block in page_of(*lines):
        try:
            problem = world.play(block)
            yield problem and "wrong"
        except pytest.skip.Exception as skipped:
            yield str(skipped)


LACKS = "needs no-such-program"
AS_BEFORE = f"{LACKS}: the block at page.md:3 makes what this one reads"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lines", "outcomes"),
    [
        ((*NEEDS, *READS), [LACKS, AS_BEFORE]),
        ((*NEEDS, *READS, "<!-- prints -->", "```text", "it", "```"), [LACKS, AS_BEFORE, None]),
        (("<!-- file made.json -->", "```json", "{}", "```", *NEEDS, *READS), [None, LACKS, None]),
        ((*NEEDS, "<!-- run -->", "```bash", "ls made.json || :", "```"), [LACKS, None]),
        ((*NEEDS, "<!-- run -->", "```bash", "false", "```"), [LACKS, "wrong"]),
        ((*NEEDS, "<!-- run -->", "```bash", "test -e other.json", "```"), [LACKS, "wrong"]),
        (
            (*NEEDS, "<!-- run -->", "```bash", "touch made.json", "```", *READS[:2], "exit 4", "```"),
            [LACKS, None, "wrong"],
        ),
        (READS, ["wrong"]),
    ],
)
def test_a_block_that_goes_wrong_for_want_of_what_a_skipped_block_makes_is_skipped(copy, lines, outcomes):
    assert list(played(copy, *lines)) == outcomes


def test_what_a_skipped_block_makes_is_also_what_it_shows(copy):
    makes = [line.replace(" >made.json", "") for line in NEEDS]
    shows = ("<!-- prints -->", "```text", "/home/me/project/made.json", "```")
    shown_by_reader = ("<!-- run exit=1 -->", *READS[1:], "<!-- prints -->", "```text", "all of it", "```")
    assert list(played(copy, *makes, *shows, *shown_by_reader)) == [LACKS, None, None, AS_BEFORE]


def test_what_lacks_a_file_of_a_skipped_block_makes_nothing_either(copy):
    between = ("<!-- run -->", "```bash", "cp made.json copy.json", "```")
    reader = ("<!-- run -->", "```bash", "cat copy.json", "```")
    assert list(played(copy, *NEEDS, *between, *reader)) == [LACKS, AS_BEFORE, AS_BEFORE]


def test_the_glossaries_explain_the_same_words():
    english, chinese = (
        re.findall(r"(?m)^\| (?!word |词 )([^|（]*?)(?:（.*?）)? \|", documents.read(page))
        for page in ("docs/glossary.md", "docs/zh/glossary.md")
    )
    assert len(english) > 40 and english == chinese
