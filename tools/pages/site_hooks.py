"""The hooks of mkdocs for the site: one language at a time, in the menu, the theme and the search.

mkdocs.yml has the menu in English, and the Chinese form of its titles.  The Chinese menu has the same parts with the
pages of docs/zh.  If a page has no Chinese form, the menu links to the English one.  Each language has its own search.
The theme looks for its files below the base of the site, and for a Chinese page that base is docs/zh.
"""

from __future__ import annotations

import html
import json
import logging
import posixpath
import re
from pathlib import Path

import jieba
from mkdocs.structure.nav import Link, Navigation, Section

from tools.pages import command_pages, site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_log = logging.getLogger("mkdocs.hooks.site")  # a warning there is an error: mkdocs.yml is strict
_NAMES = {"en": "English", "zh": "中文"}
_SAME = {"en": "This page in English", "zh": "本页的中文版"}
_HOME = {"en": "README.md", "zh": "README_CN.md"}
_NO_CHINESE = "本页只有英文；到中文首页"
_ONLY_ENGLISH = "{}（英文）"
_BASE = "docs/zh/"  # of Chinese pages
_CONFIG = re.compile(r'(?<=<script id="__config" type="application/json">)(.*?)(?=</script>)', re.DOTALL)
_CELL = re.compile(r"<td.*?</td>", re.DOTALL)
# what the theme would load for diagrams, a code host's stars and old browsers; a name of XML is not an address
_FOREIGN = re.compile(r"""(?<=["'`])https?://(?!www\.w3\.org/)""")
_LEAD = {"en": "What do you want to do?", "zh": "您想做什么？"}
_INDEX = "search/search_index.{}"
_BACKGROUND = ("CHANGELOG.md", "docs/benchmarks.md", "docs/modules.md")  # the search puts other pages before these
_CHINESE_ENDS = "，。：；、（）“”？！|"  # words end there


def on_config(config: Any) -> None:
    """Puts the pages of the commands into the menu, and makes mkdocs and jieba quiet, but for warnings.

    With its option --quiet mkdocs would not count warnings, and a dead link would be no error.  What jieba keeps for
    its next start goes into our folder.
    """
    logging.getLogger("mkdocs").setLevel(logging.WARNING)
    jieba.setLogLevel(logging.WARNING)
    jieba.dt.tmp_dir = str(Path(config.docs_dir).parent)
    listed = f"{command_pages.FOLDERS['en']}/{command_pages.INDEX}"
    for part in config.nav:
        for items in part.values():
            if listed in items:
                items.extend(
                    {group: [str(command_pages.path_of(command, "en")) for command in members]}
                    for group, members in command_pages.by_group("en").items()
                )


def on_nav(nav: Any, config: Any, files: Any) -> None:
    """Keeps the menu in English; the pages have no titles yet."""
    config.extra["menus"] = {"en": nav}
    nav.homepage = files.get_file_from_path(_HOME["en"]).page


def on_env(env: Any, config: Any, files: Any) -> None:
    """Makes the Chinese menu, now that the pages have their titles."""
    menus = config.extra["menus"]
    titles = {**config.extra["menu_zh"], **command_pages.group_titles()}
    pages: list[Any] = []
    menus["zh"] = Navigation([_in_chinese(item, files, titles, pages) for item in menus["en"].items], pages)
    for page, following in zip(pages, pages[1:]):
        page.next_page, following.previous_page = following, page
    menus["zh"].homepage = files.get_file_from_path(_HOME["zh"]).page
    there = {page.file.src_uri for page in pages}
    for file in files.documentation_pages():
        if file.src_uri in _BACKGROUND:
            file.page.meta["search"] = {"boost": 0.1}
        if site.language_of(file.src_uri) == "zh" and file.src_uri not in there:
            _log.warning("%s: there is no page %s in the menu", file.src_uri, site.other(file.src_uri))


def _in_chinese(item: Any, files: Any, titles: dict[str, str], pages: list[Any]) -> Any:
    """A part of the Chinese menu; puts its pages into `pages`."""
    if item.is_section:
        if item.title not in titles:
            _log.warning("mkdocs.yml: extra.menu_zh has no Chinese for the title %s", item.title)
        section = Section(
            titles.get(item.title, item.title), [_in_chinese(one, files, titles, pages) for one in item.children]
        )
        for child in section.children:
            child.parent = section
        return section
    file = files.get_file_from_path(site.other(item.file.src_uri))
    if file is None:
        return Link(_ONLY_ENGLISH.format(item.title), item.url)
    pages.append(file.page)
    return file.page


def on_template_context(context: Any, template_name: str, config: Any) -> Any:
    """A page of the theme, such as 404.html, has the English menu."""
    return {**context, "nav": config.extra["menus"]["en"]}


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """In a table, Markdown writes | as \\|, in code too; the library here leaves the \\ in code."""
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)


def on_page_context(context: Any, page: Any, config: Any, nav: Any) -> Any:
    """The menu and the theme in the page's language, and the switch to the other."""
    path = page.file.src_uri
    language = site.language_of(path)
    config.theme["language"] = language
    there = {one.file.src_uri: one for menu in config.extra["menus"].values() for one in menu.pages}
    wanted = "en" if language == "zh" else "zh"
    same = there.get(site.other(path))
    context["nav"] = config.extra["menus"][language]
    if path == _HOME[language]:
        lead = _lead(config.extra["menus"], config.extra["lead"], language)
        page.content = page.content.replace("<h2", f"{lead}<h2", 1)
    context["other"] = {
        "url": (same or there[_HOME[wanted]]).url,
        "language": wanted,
        "name": _NAMES[wanted],
        "title": _SAME[wanted] if same else _NO_CHINESE,
    }
    return context


def _lead(menus: dict[str, Any], said: dict[str, list[str]], language: str) -> str:
    """The cards of the first page: the parts of the menu that mkdocs.yml names, each with the words it has for it."""
    cards = []
    for english, part in zip(menus["en"].items, menus[language].items):
        if english.title in said:
            words = said[english.title][language == "zh"]
            title, address = html.escape(part.title), html.escape(_first(part).url)
            cards.append(f'<a href="{address}"><strong>{title}</strong> {html.escape(words)}</a>')
    if len(cards) < len(said):
        _log.warning("mkdocs.yml: extra.lead names a part that is not in the menu")
    return f'<nav class="lead-cards" aria-label="{_LEAD[language]}">{"".join(cards)}</nav>\n'


def _first(part: Any) -> Any:
    """The first page in a part of the menu."""
    return _first(part.children[0]) if part.is_section else part


def on_post_page(output: str, page: Any, config: Any) -> str:
    """The search of a Chinese page is below docs/zh."""
    found = _CONFIG.search(output)
    if not found:
        _log.warning("%s: the theme has no settings for its search", page.file.src_uri)
        return output
    if site.language_of(page.file.src_uri) == "en":
        return output
    settings = json.loads(found[1])
    settings["base"] = f"{settings['base']}/{_BASE}"
    return output[: found.start()] + json.dumps(settings).replace("</", "<\\/") + output[found.end() :]


def on_post_build(config: Any) -> None:
    """Divides the index of the search by languages, and takes the addresses of other servers out of the theme.

    The search's plug-in has written one index for all pages.
    """
    above = Path(config.site_dir)
    for script in (above / "assets").rglob("*.js"):
        text = script.read_text(encoding="utf-8")
        script.write_text(_FOREIGN.sub("data:text/javascript,", text), encoding="utf-8")
    whole = json.loads((above / _INDEX.format("json")).read_text(encoding="utf-8"))
    for language, base in (("en", ""), ("zh", _BASE)):
        text = json.dumps(index_of(whole, language, base), ensure_ascii=False, separators=(",", ":"))
        for ending, before in (("json", ""), ("js", "var __index = ")):  # the second: without a server
            path = above / base / _INDEX.format(ending)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(before + text, encoding="utf-8")


def index_of(whole: dict[str, Any], language: str, base: str) -> dict[str, Any]:
    """The part of the index that has the pages of one language, with addresses relative to `base`."""
    settings = dict(whole["config"], lang=["en"])
    if language == "zh":
        settings.update(lang=["en", "zh"], separator=rf"[\s\-\u200b{_CHINESE_ENDS}]+")
    entries = []
    for entry in whole["docs"]:
        page, mark, place = entry["location"].partition("#")
        if site.language_of(re.sub(r"\.html$", ".md", page)) == language:
            address = posixpath.relpath(page or ".", base) if base else page
            entries.append({**entry, "location": address + mark + place})
    return {"config": settings, "docs": entries}
