"""Builds a release in dist/, and tries it: wheel and sdist, as an index wants them, and the README's commands.

  python tests/release.py

Refuses a checkout with changes, a version that CHANGELOG.md does not have, and one whose tag is another commit.  The
README's commands of mslaunch run in an empty folder, with the wheel in a fresh environment.  Nothing is uploaded: the
last lines say how.

Exit: 0 the release is in dist/, 1 it is not, and one line says why.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(r"(?ms)^<!-- (file|run)\b([^\n]*) -->\n```\w+\n(.*?)^```")
_SECONDS = 300  # for a command of the README


class Refused(Exception):
    """There is no release; the text says why, and what to do."""


def main():
    """The exit code."""
    try:
        number = check()
        made = build(number)
        with tempfile.TemporaryDirectory(prefix="mindspore-launch-release-") as folder:
            install(made[0], Path(folder))
            tried = try_readme(Path(folder), (ROOT / "README.md").read_text(encoding="utf-8"))
    except Refused as refusal:
        print(f"release: {refusal}", file=sys.stderr)
        return 1
    print(f"release: {number} is in dist/; {tried} blocks of README.md did what they say")
    files = " ".join(shlex.quote(os.path.relpath(path)) for path in made)
    print(f"release: to publish it: git tag v{number} && git push origin v{number} && python -m twine upload {files}")
    return 0


def run(*words, **options):
    """What a program prints; raises Refused with its last lines where it fails."""
    options = {"cwd": ROOT, "capture_output": True, "text": True, "stdin": subprocess.DEVNULL, **options}
    ended = subprocess.run([*map(str, words)], check=False, **options)
    if ended.returncode:
        told = (ended.stdout + ended.stderr).strip()[-2000:]
        raise Refused(f"{shlex.join(map(str, words))}: exit {ended.returncode}\n{told}")
    return ended.stdout


def check():
    """The version to release.  Raises Refused."""
    changed = run("git", "status", "--porcelain").splitlines()
    if changed:
        raise Refused(f"the checkout has changes, such as {changed[0][3:]}; commit them, or: git stash -u")
    text = (ROOT / "mindspore_launch" / "__init__.py").read_text(encoding="utf-8")
    number = re.search(r'(?m)^__version__ = "(\d+\.\d+\.\d+)"$', text)
    if not number:
        raise Refused("mindspore_launch/__init__.py has no __version__ of three numbers")
    number = number[1]
    headings = re.findall(r"(?m)^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    if number not in headings:
        raise Refused(f"CHANGELOG.md has no heading ## {number}; write what is new, or change __version__")
    tag = f"v{number}"
    if run("git", "tag", "--list", tag).strip() and not run("git", "tag", "--points-at", "HEAD", "--list", tag).strip():
        raise Refused(f"{tag} is another commit; raise __version__ in mindspore_launch/__init__.py")
    return number


def build(number):
    """The paths of the wheel, which is built from the sdist, and of the sdist; an index would take them."""
    run(sys.executable, "-m", "build", "--outdir", "dist", ROOT)
    made = [ROOT / "dist" / f"mindspore_launch-{number}{end}" for end in ("-py3-none-any.whl", ".tar.gz")]
    for path in made:
        if not path.is_file():
            raise Refused(f"python -m build has not made {os.path.relpath(path)}")
    run(sys.executable, "-m", "twine", "check", "--strict", *made)
    return made


def install(wheel, folder):
    """A fresh environment with the wheel in the folder."""
    run(sys.executable, "-m", "venv", folder / "venv")
    run(folder / "venv/bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", wheel)


def blocks(readme):
    """(verb, rest of the mark, text) of the README's files, and of its commands of mslaunch."""
    for verb, rest, text in _BLOCK.findall(readme):
        if verb == "file" or re.match(r"mslaunch\b", text):
            yield verb, rest.strip(), text


def try_readme(folder, readme):
    """How many of the README's blocks of mslaunch end as they say.  Raises Refused."""
    home, tried = folder / "home", 0
    home.mkdir()
    path = os.pathsep.join([str(folder / "venv/bin"), os.environ.get("PATH", os.defpath)])
    environ = {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "LAUNCH_LOCKS": str(folder / "locks")}
    for verb, rest, text in blocks(readme):
        if verb == "file":
            (home / rest).parent.mkdir(parents=True, exist_ok=True)
            (home / rest).write_text(text, encoding="utf-8")
            continue
        wanted = int((re.search(r"\bexit=(\d+)", rest) or [0, "0"])[1])
        options = {"cwd": home, "env": environ, "capture_output": True, "text": True, "stdin": subprocess.DEVNULL}
        ended = subprocess.run(["bash", "-e", "-c", text], check=False, timeout=_SECONDS, **options)
        if ended.returncode != wanted:
            told = f"{ended.stdout}{ended.stderr}".strip()[-2000:]
            raise Refused(f"README.md: exit {ended.returncode}, not {wanted}, of:\n{text}{told}")
        tried += 1
    if not tried:
        raise Refused("README.md shows no command of mslaunch to try: <!-- run --> before a block that begins with it")
    return tried


if __name__ == "__main__":
    sys.exit(main())
