"""Finds this project on another host, where its folder may differ.  It runs there as text: see elsewhere.py.

HERE            prints whether the project is there: "same VERSION DIGEST HERE", "other VERSION DIGEST FOLDER" or "none"
HERE COMMAND... becomes the command; arguments that name files of HERE name those of this host's project
"""

import hashlib
import os
import sys

AGENT = os.path.join("tools", "rank", "agent.py")
PACKAGE = "mindspore_launch"
UNKNOWN = "unknown"


def place(here: str) -> str:
    """The folder of the project: `here` if it is there, else what this Python finds as a package; empty: neither."""
    if os.path.isfile(os.path.join(here, AGENT)):
        return here
    import site
    from importlib.util import find_spec

    sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))  # Python leaves both out, with -I
    if not os.environ.get("PYTHONNOUSERSITE") and sys.prefix == sys.base_prefix:
        site.addsitedir(site.getusersitepackages())
    spec = find_spec(PACKAGE)
    package = os.path.dirname(os.path.realpath(spec.origin)) if spec and spec.origin else here
    for folder in (package, os.path.dirname(package)):  # installed, all is in the package; in a checkout, next to it
        if os.path.isfile(os.path.join(folder, AGENT)):
            return folder
    return ""


def version(root: str) -> str:
    """The number that the package has; UNKNOWN where it has none."""
    for folder in (root, os.path.join(root, PACKAGE)):
        try:
            with open(os.path.join(folder, "__init__.py"), encoding="utf-8") as file:
                for line in file:
                    if line.startswith("__version__ = "):
                        return line.rstrip()[len("__version__ = ") + 1 : -1]
        except (OSError, UnicodeError):
            continue
    return UNKNOWN


def digest(root: str) -> str:
    """A digest of the names and contents of all modules that may run on a host; the folder may have any name."""
    found, start = hashlib.sha256(), len(os.path.join(root, ""))
    for name in ("hccl_tools", "tools"):
        for path in modules(os.path.join(root, name)):
            found.update(os.fsencode(path[start:]) + b"\0")
            try:
                with open(path, "rb", 0) as file:  # a buffer takes longer than the rest of it
                    found.update(hashlib.sha256(file.read()).digest())
            except OSError:
                return "unreadable"
    return found.hexdigest()


def modules(folder: str) -> list[str]:
    """The Python files of a package and of those in it; tools/pages makes the pages of a checkout."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    if "__init__.py" not in names:
        return []  # files that the user keeps there
    found = [os.path.join(folder, name) for name in names if name.endswith(".py")]
    for name in names:
        if "." not in name and name not in ("pages", "__pycache__"):
            found += modules(os.path.join(folder, name))
    return found


def main(here: str, *command: str) -> None:
    """Prints where the project is, or becomes the command."""
    root = place(here)
    if not command:
        words = ["same" if root == here else "other", version(root), digest(root), root] if root else ["none"]
        os.write(1, os.fsencode(" ".join(words) + "\n"))
        return
    if not root:
        text = "this project is neither at " + ascii(here) + " nor installed in " + ascii(sys.executable) + "\n"
        os.write(2, text.encode())
        sys.exit(78)
    words = [own(word, here, root) for word in command]
    os.execvp(words[0], words)


def own(word: str, here: str, root: str) -> str:
    """The word on this host, whose project is in `root`; the word may name a file of `here`."""
    below = word[len(here) :] if word.startswith(here + os.sep) else ""
    there = root + below
    return there if below and os.path.exists(there) and not os.path.exists(word) else word


if __name__ == "__main__":
    main(*sys.argv[1:])
