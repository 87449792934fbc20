"""What several files of tests about the project share."""

import pytest
import sites

from tools.pages import site


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The folder with `pages` and the site, `html`."""
    for module, name in (("material", "mkdocs-material"), ("jieba", "jieba")):
        pytest.importorskip(module, reason=f"needs {name}")
    folder = tmp_path_factory.mktemp("site")
    site.gather(folder / "pages")
    ended = sites.build(folder)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    return folder
