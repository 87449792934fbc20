"""The site that `make docs` builds: no dead link, nothing from other servers, one language, a page per command."""

import html.parser
import json
import os
import re
from urllib.parse import unquote, urlsplit

import documents
import pytest
import sites
import yaml
from suite.needs import need_packages, needs, needs_packages

from tools.pages import command_pages, commands, page_pictures, site

pytestmark = pytest.mark.thorough

ROOT = documents.ROOT
# {(tag, attribute)} of what a browser loads by itself; "srcset" has several addresses
LOADED = {
    ("script", "src"), ("img", "src"), ("img", "srcset"), ("source", "src"), ("source", "srcset"), ("iframe", "src"),
    ("embed", "src"), ("object", "data"), ("video", "src"), ("video", "poster"), ("audio", "src"), ("track", "src"),
    ("input", "src"), ("image", "href"), ("use", "href"), ("image", "xlink:href"), ("use", "xlink:href"),
}  # fmt: skip
NOT_LOADED = {"alternate", "author", "canonical", "help", "license", "next", "prev"}  # links in the head
# A small site: the pages that the settings ask for, and one with a Chinese form.
PARTS = ("Launch", "When it fails", "Train", "Commands", "Reference")
MENU = [{"Start": ["README.md"]}, {"Watch": ["docs/watch.md"]}, *({part: [f"docs/{part}.md"]} for part in PARTS)]
PAGES = {
    "README.md": "# Start\n",
    "README_CN.md": "# 开始\n",
    "docs/watch.md": "# Watch\n",
    "docs/zh/watch.md": "# 观察\n",
}
PAGES |= {f"docs/{part}.md": f"# {part}\n" for part in PARTS}
IN_CSS = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
IN_SCRIPT = re.compile(r"""["'`](https?://(?!www\.w3\.org/)[^"'`]+|//[\w-]+\.[^"'`]+)["'`]""")


class Page(html.parser.HTMLParser):
    """What a page loads, its menu, and where its switch leads."""

    def __init__(self, text):
        super().__init__()
        self.loads, self.menu, self.switch, self._text, self._link = [], [], None, None, None
        self.feed(text)
        self.language = re.search(r'<html lang="(\w+)"', text)[1]

    def handle_starttag(self, tag, attrs):
        here = dict(attrs)
        for name, value in here.items():
            if (tag, name) in LOADED:
                self.loads += [one.split()[0] for one in value.split(", ")] if name == "srcset" else [value]
            elif name == "style":
                self.loads += in_css(value)
            elif (tag, name) == ("link", "href") and not set(here.get("rel", "").split()) & NOT_LOADED:
                self.loads.append(value)
        assert here.get("http-equiv", "").lower() != "refresh"
        classes = (here.get("class") or "").split()
        if tag == "a" and "other-language" in classes:
            self.switch = here["href"]
        if tag == "a" and ("md-nav__link" in classes or "md-tabs__link" in classes) and here["href"][0] != "#":
            self._link = [here["href"], ""]
        self._text = tag if tag in ("script", "style") else None

    def handle_endtag(self, tag):
        self._text = None
        if tag == "a" and self._link:
            self.menu.append((self._link[0], " ".join(self._link[1].split())))
            self._link = None

    def handle_data(self, data):
        if self._link:
            self._link[1] += data
        if self._text == "style":
            self.loads += in_css(data)
        elif self._text == "script":
            self.loads += in_script(data)


def in_css(text):
    return [one or other for one, other in IN_CSS.findall(text)]


def in_script(text):
    return IN_SCRIPT.findall(text)


def read(path):
    return Page(path.read_text(encoding="utf-8"))


def aim(path, address):
    """The file that an address on the page `path` means."""
    return (path.parent / unquote(urlsplit(address).path)).resolve()


def why_not_local(top, path, address):
    """Why a browser could not load this address on the file `path` from the folder `top`, or ""."""
    parts = urlsplit(address)
    if parts.scheme == "data" or address.startswith("#"):
        return ""
    if parts.scheme or parts.netloc:
        return f"{path.relative_to(top)}: foreign: {address}"
    there = top / parts.path.lstrip("/") if parts.path.startswith("/") else aim(path, address)
    return "" if there.is_file() else f"{path.relative_to(top)}: not there: {address}"


def faults(top):
    """What the files of the site load and should not, and how many references were read."""
    found, count = [], 0
    for path in sorted(top.rglob("*")):
        if path.suffix in (".html", ".css", ".js", ".svg"):
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".html":
                loaded = Page(text).loads
            else:
                loaded = in_script(text) if path.suffix == ".js" else in_css(text)
            if path.name.startswith("search_index."):
                loaded = []  # the text of the pages
            count += len(loaded)
            found += filter(None, (why_not_local(top, path, address) for address in loaded))
    return found, count


def test_a_browser_loads_nothing_from_other_servers(built):
    found, count = faults(built / "html")
    assert found == [] and count > 500


@pytest.mark.parametrize("text", [
    '<html lang="en"><script src="https://unpkg.com/iframe-worker/shim"></script>',
    '<html lang="en"><link rel="stylesheet" href="https://fonts.example/css">',
    '<html lang="en"><link rel="preconnect" href="//fonts.example">',
    '<html lang="en"><img srcset="a.png 1x, https://cdn.example/a.png 2x">',
    '<html lang="en"><style>p { background: url(https://cdn.example/a.png) }</style>',
    '<html lang="en"><script>load("https://cdn.example/a.js")</script>',
    '<html lang="en"><img src="../../nowhere.png">',
])  # fmt: skip
def test_what_would_be_loaded_from_elsewhere_is_found(tmp_path, text):
    (tmp_path / "a.png").touch()
    (tmp_path / "page.html").write_text(text)
    found, _ = faults(tmp_path)
    assert len(found) == 1 and found[0].startswith("page.html: ")


def test_a_link_that_a_reader_clicks_may_lead_anywhere(tmp_path):
    (tmp_path / "page.html").write_text('<html lang="en"><a href="https://www.mindspore.cn">MindSpore</a>')
    assert faults(tmp_path) == ([], 0)


def test_a_dead_link_is_an_error(tmp_path):
    """A small site with the settings of the whole one shows it."""
    for name, text in PAGES.items():
        path = tmp_path / "pages" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    good = sites.build(tmp_path, menu=MENU)
    assert (good.returncode, good.stderr) == (0, "")
    with open(tmp_path / "pages" / "docs" / "zh" / "watch.md", "a", encoding="utf-8") as file:
        file.write("\n[one](nowhere.md) [two](../watch.md#no-such-part) [three](../../nothing/)\n")
    (tmp_path / "pages" / "docs" / "zh" / "only_here.md").write_text("# 没有英文\n", encoding="utf-8")
    ended = sites.build(tmp_path, menu=MENU)
    assert ended.returncode == 1
    assert "'nowhere.md'" in ended.stderr and "no-such-part" in ended.stderr and "'../../nothing/'" in ended.stderr
    assert "docs/zh/only_here.md: there is no page docs/only_here.md in the menu" in ended.stderr


def test_the_switch_leads_to_the_same_page_and_back(built):
    pages = sites.addresses(built)
    both = 0
    for name, path in pages.items():
        page = read(path)
        assert page.language == site.language_of(name), name
        home = "README.md" if page.language == "zh" else "README_CN.md"
        wanted = pages.get(site.other(name), pages[home])
        assert aim(path, page.switch) == wanted and wanted.is_file(), name
        both += site.other(name) in pages
    assert both > 2 * 40
    assert aim(built / "html/docs/watch.html", "zh/watch.html") == pages["docs/zh/watch.md"]  # where it has always been


def test_the_menu_has_one_language(built):
    pages = sites.addresses(built)
    languages = {path: site.language_of(name) for name, path in pages.items()}
    menus = {}
    for name in ("docs/watch.md", "docs/commands/watch.py.md", "docs/zh/watch.md", "docs/zh/commands/watch.py.md"):
        path = pages[name]
        menu = {aim(path, address): words for address, words in read(path).menu}
        for there, words in menu.items():
            assert languages[there] == site.language_of(name) or words.endswith("（英文）"), words
            assert languages[there] == "zh" or not re.search("[\u4e00-\u9fff]", words.replace("（英文）", "")), words
        menus[name] = menu
    assert set(menus["docs/watch.md"]) == {path for path, language in languages.items() if language == "en"}
    there = set(menus["docs/zh/watch.md"])
    assert {path for path, language in languages.items() if language == "zh"} < there
    assert pages["docs/architecture.md"] in there
    parts = [words for _, words in read(pages["docs/watch.md"]).menu[:8]]
    assert parts == ["Start", "Launch", "Watch", "When it fails", "Train", "Commands", "Reference", "Project"]


def longest(items):
    """How many pages the longest list of a menu has that no title divides."""
    below = [inner for item in items if isinstance(item, dict) for inner in item.values()]
    return max([sum(isinstance(item, str) for item in items), *map(longest, below)])


def test_no_list_of_the_menu_is_long():
    menu = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), LoaderOfMenu)["nav"]
    assert longest(menu) <= 7 and all(isinstance(part, dict) for part in menu)


class LoaderOfMenu(yaml.SafeLoader):
    """Passes by what mkdocs gives to Python."""


LoaderOfMenu.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


@pytest.mark.parametrize(("page", "titles"), [
    ("README.md", ["Launch", "Watch", "When it fails", "Train", "Commands", "Reference"]),
    ("README_CN.md", ["启动", "观察", "出现问题时", "训练", "命令", "参考"]),
])  # fmt: skip
def test_the_first_page_leads_to_the_parts_of_the_menu(built, page, titles):
    path = sites.addresses(built)[page]
    cards = re.findall(r'<nav class="lead-cards".*?</nav>', path.read_text(encoding="utf-8"))
    found = re.findall(r'<a href="([^"]+)"><strong>([^<]+)</strong> ([^<]+)</a>', cards[0])
    assert len(cards) == 1 and [title for _, title, _ in found] == titles
    menu = dict(read(path).menu[:8])
    for address, title, words in found:
        assert menu[address] == title and aim(path, address).is_file()
        assert bool(re.search("[\u4e00-\u9fff]", words)) == (page == "README_CN.md")


def test_each_page_leads_to_the_next_one_in_its_language(built):
    for page, following in (("docs/watch.html", "metrics.html"), ("docs/zh/watch.html", "metrics.html")):
        text = (built / "html" / page).read_text(encoding="utf-8")
        assert re.findall(r'<a href="([^"]+)" class="md-footer__link md-footer__link--next"', text) == [following]


def index(built, name, language):
    """The index that a browser reads: without a server, and with one."""
    text = (built / "html" / name / "search" / "search_index.js").read_text(encoding="utf-8")
    found = json.loads(text.partition("=")[2])
    assert found == json.loads((built / "html" / name / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert language in found["config"]["lang"]
    return found


def test_the_search_has_one_language(built):
    pages = sites.addresses(built)
    for base, language in (("", "en"), ("docs/zh/", "zh")):
        found = index(built, base, language)
        there = {aim(built / "html" / base / "any.html", entry["location"] or "index.html") for entry in found["docs"]}
        assert there == {path for name, path in pages.items() if site.language_of(name) == language}
    separator = re.compile(found["config"]["separator"])
    assert "退出码" not in separator.split("全部\u200b退出\u200b码，与 rank")
    assert {"全部", "码", "rank"} < set(separator.split("全部\u200b退出\u200b码，与 rank"))


def test_each_command_has_a_page_in_both_languages(built):
    need_packages()
    assert {command.name for command in command_pages.commands()} == {
        "mslaunch", *commands.SCRIPTS, *(os.path.basename(path) for path in commands.PYTHON_COMMANDS)
    }  # fmt: skip
    for command in command_pages.commands():
        for language in command_pages.LANGUAGES:
            text = (built / "pages" / command_pages.path_of(command, language)).read_text(encoding="utf-8")
            told = commands.read(command_pages.text_of(command, language))
            assert f"\n{command.typed}" in text or command.name == "run_slurm.sh", command.name
            for option in told.options:
                assert f"`{option.names[0]}" in text.replace("\\|", "|"), f"{command.name}: {option.names[0]}"
            shown = read(built / "html" / re.sub(r"\.md$", ".html", str(command_pages.path_of(command, language))))
            assert shown.language == language
    watch = (built / "html/docs/commands/ascend4p.sh.html").read_text(encoding="utf-8")
    assert "<code>--device_target Ascend|GPU|CPU</code>" in watch


HELP = """\
usage: look.py [-h] [--to FILE|-] <RUN>

Looks at a *run*, and says `what` is_there: see docs/watch.md and docs/nothing.md.

  python tools/look.py logs/<RUN>    that one

Exit: 0 seen & said, 2 usage.

positional arguments:
  RUN             the folder

options:
  -h, --help      show this help message and exit
  --to FILE|-, -t FILE|-
                  where [to] write
"""


def test_a_page_has_all_that_help_prints():
    command = command_pages.Command(
        name="look.py", typed="python tools/look.py", file="tools/look.py", group="A run", installed="mslaunch look"
    )  # fmt: skip
    assert (
        command_pages.page(command, "en", HELP)
        == r"""# look.py

Looks at a \*run\*, and says `what` is\_there: see [docs/watch.md](../watch.md) and docs/nothing.md.

## What to type

```text
mslaunch look [--to FILE|-] <RUN>
python tools/look.py [--to FILE|-] <RUN>
```

```text
python tools/look.py logs/<RUN>    that one
```

## Exit codes

0 seen &amp; said, 2 usage.

## Positional arguments

| argument or option | meaning |
|---|---|
| `RUN` | the folder |

## Options

| argument or option | meaning |
|---|---|
| `--to FILE\|-`, `-t FILE\|-` | where \[to\] write |
"""
    )


def test_a_command_that_cannot_print_its_help_has_no_page(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command_pages.importlib.util, "find_spec", lambda name: None if name == "numpy" else name)
    monkeypatch.setattr(command_pages, "pages", lambda: {})
    assert command_pages.lacks("tools/prepare_cifar10.py") == ["numpy"]
    assert command_pages.lacks("tools/watch.py") == []
    assert "prepare_cifar10.py" not in {command.name for command in command_pages.commands()}
    assert site.main([str(tmp_path / "pages")]) == 0
    assert "no page for tools/prepare_cifar10.py: its --help needs numpy\n" in capsys.readouterr().err


def test_a_help_that_fails_is_named(monkeypatch, tmp_path, capsys):
    broken = command_pages.Command(name="x", typed="x", file="scripts/no such.sh", group="A run", installed="")
    monkeypatch.setattr(command_pages, "commands", lambda: [broken])
    assert site.main([str(tmp_path / "pages")]) == 1
    assert "bash 'scripts/no such.sh' --help ended with 127: " in capsys.readouterr().err


def test_a_link_to_a_folder_is_its_text_and_a_dead_one_stays(monkeypatch, tmp_path):
    monkeypatch.setattr(site.project, "ROOT", str(tmp_path))
    (tmp_path / "docs").mkdir()
    (tmp_path / "configs").mkdir()
    (tmp_path / "docs" / "x.md").write_text("see [configs/](../configs/), [b](../b/), [y](y.md)\n")
    assert site.text_of(site.Path("docs/x.md")) == "see configs/, [b](../b/), [y](y.md)\n"


@pytest.mark.parametrize(("page", "other"), [
    ("README.md", "README_CN.md"),
    ("examples/README.md", "examples/README_CN.md"),
    ("docs/watch.md", "docs/zh/watch.md"),
    ("docs/commands/README.md", "docs/zh/commands/README.md"),
])  # fmt: skip
def test_every_page_has_its_place_in_the_other_language(page, other):
    assert (site.other(page), site.other(other)) == (other, page)
    assert (site.language_of(page), site.language_of(other)) == ("en", "zh")


def test_the_site_deletes_no_folder_but_its_own(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(command_pages, "pages", lambda: {})
    (tmp_path / "README.md").write_text("mine")
    assert site.main([str(tmp_path)]) == 2 and "name a new folder" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    for _ in range(2):
        assert site.main([str(tmp_path / "pages")]) == 0


FIND = """
const done = arguments[0], end = Date.now() + 60000;
(function look() {
  const links = [...document.querySelectorAll(".md-search-result__link")].map((link) => link.href);
  links.length || Date.now() > end ? done(links) : setTimeout(look, 50);
})();
"""


@needs(*page_pictures.PROGRAMS)
@needs_packages("selenium")
@pytest.mark.parametrize(("page", "words", "first"), [
    ("index.html", "hang_timeout", "docs/restarts.html"),
    ("docs/commands/watch.py.html", "super pod", "docs/rank_tables.html"),
    ("README_CN.html", "超节点", "docs/zh/rank_tables.html"),
    ("docs/zh/commands/watch.py.html", "退出码", "docs/zh/exit_codes.html"),
])  # fmt: skip
def test_the_search_works_in_a_folder_and_without_a_network(built, page, words, first):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    top = f"file://{built / 'html'}/"
    with page_pictures.browser(1400, 900) as driver:
        driver.set_script_timeout(90)
        driver.get(top + page)
        driver.execute_script("document.querySelector('#__search').click()")
        # Pasted: while words are typed, the search warns of beginnings that it cannot parse, such as "super p".
        field = driver.find_element(By.CSS_SELECTOR, "[data-md-component=search-query]")
        driver.execute_script("arguments[0].value = arguments[1]", field, words)
        field.send_keys(Keys.END)
        found = driver.execute_async_script(FIND)
        events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
        said = [entry["message"] for entry in driver.get_log("browser")]
    asked = {event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"}
    assert len(asked) > 5 and [url for url in asked if not url.startswith((top, "data:"))] == []
    assert said == []
    found = [link.partition("?")[0][len(top) :] for link in found]
    assert found and found[0] == first
    chinese = [link for link in found if link.startswith("docs/zh/") or "_CN." in link]
    assert chinese == (found if "zh" in first else [])
