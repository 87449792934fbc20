"""What helps contributors agrees with what `make lint` and the programs themselves use."""

import ast
import configparser
import os
import re
import shlex
import subprocess
import sys

import documents
import pytest
import yaml

from hccl_tools.machine import interpreter

ROOT = documents.ROOT
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOW = ROOT / ".github" / "workflows" / "tests.yml"
HOOKS = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))["repos"][0]["hooks"]


def lint_commands():
    """The commands of `make lint`, each as a list of words."""
    command = ["make", "--no-print-directory", "-n", "-o", ".venv/with-lint", "lint"]  # make test is a make, too
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    return [shlex.split(line) for line in told.stdout.splitlines()]


def files():
    """The paths of all files of the project."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    return subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


def is_taken(hook, path):
    """Whether pre-commit gives `path` to the hook."""
    if not hook.get("pass_filenames", True):
        return False
    if "types_or" in hook:
        return path.endswith((".py", ".pyi"))
    return bool(re.search(hook["files"], path)) and not re.search(hook.get("exclude", "^$"), path)


def test_pre_commit_checks_the_same_files_in_the_same_way_as_make_lint():
    there = set(files())
    told = {}
    for tool, *words in lint_commands():
        options, paths = [word for word in words if word not in there], {word for word in words if word in there}
        if tool.endswith("/ruff"):
            options, paths = [*options[:-1], "--force-exclude"], {path for path in there if path.endswith(".py")}
        schema = {path for path in paths if "--schemafile" in options and path.startswith("schemas/")}
        told[" ".join([tool, *options, *schema])] = paths - schema
    of_files = [hook for hook in HOOKS if "stages" not in hook]
    offered = {hook["entry"]: {path for path in there if is_taken(hook, path)} for hook in of_files}
    assert offered == told
    assert all(hook["language"] == "system" for hook in HOOKS)


def test_what_begins_with_a_shebang_can_be_run_and_nothing_else():
    plain = [ROOT / path for path in files() if (ROOT / path).is_file() and not (ROOT / path).is_symlink()]
    wrong = [path for path in plain if (path.read_bytes()[:2] == b"#!") != os.access(path, os.X_OK)]
    assert not wrong, "chmod +x or -x"


def test_editorconfig_agrees_with_the_formatters():
    parser = configparser.ConfigParser(interpolation=None)
    parser.read_string("[top]\n" + (ROOT / ".editorconfig").read_text(encoding="utf-8"))
    (python,) = (parser[name] for name in parser.sections() if "py" in name)
    (shell,) = (parser[name] for name in parser.sections() if "bats" in name)
    line_length = re.search(r"(?m)^line-length = (\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    assert python["max_line_length"] == line_length
    (shfmt,) = (words for words in lint_commands() if words[0].endswith("/shfmt"))
    assert shfmt[1:6] == ["-i", shell["indent_size"], "-ci", "-bn", "-d"]
    assert shell["switch_case_indent"] == shell["binary_next_line"] == "true"


@pytest.mark.slow
@pytest.mark.parametrize("form", [*FORMS, WORKFLOW], ids=lambda path: path.name)
def test_what_the_code_host_reads_has_the_form_that_it_expects(form):
    pytest.importorskip("check_jsonschema", reason="needs check-jsonschema")
    kind = "workflows" if form == WORKFLOW else "issue-config" if form.name == "config.yml" else "issue-forms"
    ended = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.github-{kind}", str(form)],
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stdout


def test_ci_has_every_supported_python_and_names_tests_that_exist():
    text = WORKFLOW.read_text(encoding="utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    oldest = re.search(r'requires-python = ">=(3\.\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))[1]
    pythons = jobs["all"]["strategy"]["matrix"]["python"]
    assert [oldest, *pythons] == [f"3.{minor}" for minor in range(9, 13)]
    assert any(step.get("with", {}).get("python-version") == oldest for step in jobs["oldest-python"]["steps"])
    assert any(step.get("run", "").endswith("bash .ci/run") for step in jobs["all"]["steps"])
    classified = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert jobs["package"]["strategy"]["matrix"]["python"] == classified
    assert any(step.get("run", "").endswith("pytest -q tests/package") for step in jobs["package"]["steps"])
    named = re.findall(r"tests/\S+\.(?:bats|py|sh)", text)
    assert named and [name for name in named if not (ROOT / name).exists()] == []


def test_every_place_promises_the_same_lowest_versions():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    oldest = re.search(r'requires-python = ">=(3\.\d+)"', project)[1]
    assert oldest == ".".join(map(str, interpreter.OLDEST))
    for script in ("scripts/doctor.sh", "scripts/lib/start.sh"):
        said = re.findall(r"\b3\.\d+(?= or later| 或更高版本)", (ROOT / script).read_text(encoding="utf-8"))
        assert set(said) == {oldest}
    matched = re.findall(r"\*/(3\.\d+)\.\*", (ROOT / "scripts/doctor.sh").read_text(encoding="utf-8"))
    assert set(matched) == {oldest}
    classified = re.findall(r"Python :: (3\.\d+)", project)
    assert classified[0] == oldest and classified == [f"3.{minor}" for minor in range(9, 9 + len(classified))]
    assert f'target-version = "py{oldest.replace(".", "")}"' in project

    promised = sorted(re.findall(r'"(\S+>=[\d.]+)"', re.search(r"(?m)^dependencies = (.*)$", project)[1]))
    assert sorted(interpreter.requirement(name).strip("'") for name in interpreter.LOWEST) == promised
    for page in ("docs/index.md", "docs/zh/index.md"):
        text = documents.read(page)
        assert sorted(re.findall(r"'(\S+>=[\d.]+)'", text)) == promised
        assert re.search(r"Python (3\.\d+) (?:or later with|或更高版本)", text)[1] == oldest
    for page in ("README.md", "README_CN.md"):
        assert re.search(r"Python (3\.\d+) (?:or later\.|或更高版本。)", documents.read(page))[1] == oldest


def test_only_constraints_txt_has_exact_versions():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert "==" not in project
    exact = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    assert exact and all(re.match(r"[\w.-]+==[^ ]+( ; |$)", line) for line in exact)


def test_contributing_names_places_that_exist():
    rows = documents.read("CONTRIBUTING.md").partition("| what | look here |")[2].partition("\n## ")[0]
    places = re.findall(r"`([\w.]+/[\w./]*)`", rows)
    assert len(places) > 15 and [place for place in places if not (ROOT / place).exists()] == []


def test_contributing_names_targets_of_the_makefile():
    targets = re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"))
    rows = re.findall(r"(?m)^\| `make ([a-z]+)` \|", documents.read("CONTRIBUTING.md"))
    assert len(rows) > 4 and set(rows) <= set(targets)


def test_the_form_for_bugs_asks_for_the_doctors_page():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text(encoding="utf-8"))
    (doctor,) = (item for item in form["body"] if item.get("id") == "doctor")
    assert "bash scripts/doctor.sh" in doctor["attributes"]["label"]
    assert doctor["validations"]["required"] is True


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(sys, "stdlib_module_names"), reason="Python 3.9 does not know its own modules' names")
def test_mypy_says_the_same_whatever_optional_package_is_installed():
    settings = configparser.ConfigParser()  # toml is not read by Python 3.9 and 3.10
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    settings.read_string("[lint]\n" + text[text.index("dependencies = ") : text.index("\n\n[project.opt")])
    always = {re.split("[><]", name)[0].lower() for name in yaml.safe_load(settings["lint"]["dependencies"])}
    always |= {name.lower() for name in re.findall('"types-(.*?)>', text)}
    overrides = text[text.index("[[tool.mypy.overrides]]") :].split("\nignore_missing_imports")[0]
    skipped = set(re.findall(r'"(\w+)\.\*"', overrides))
    known = always | {"yaml", "typing_extensions"} | skipped  # mypy brings typing_extensions
    known |= set(sys.stdlib_module_names)
    known |= {path.stem for path in ROOT.glob("tests/bench/*.py")} | {path.name for path in ROOT.iterdir()}
    unknown = set()
    for path in [*ROOT.glob("tools/**/*.py"), *ROOT.glob("hccl_tools/**/*.py"), *ROOT.glob("tests/bench/*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            unknown |= {name.split(".")[0] for name in names} - known
    assert not unknown, f"{unknown} may be missing where `make lint` runs: name them in pyproject.toml's mypy overrides"
