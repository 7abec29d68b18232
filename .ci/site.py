"""What the documentation site takes from the code, and the check of the built pages.

MkDocs calls the functions that begin with `on_`.
"""

import importlib
import re
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import click
from mkdocs.exceptions import PluginError

ROOT = Path(__file__).parents[1]
#: Attributes whose address a browser loads with the page; links that people follow are no such.
_LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("link", "href"),
}

#: An address on another host in a style sheet.
_STYLE = re.compile(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)")


def on_config(config: Any) -> Any:
    """Add every page of decisions to the navigation."""
    pages = {path.name for path in (ROOT / "docs" / "decisions").glob("*.md")}
    records = sorted(pages - {"README.md"})
    for section in config.nav:
        for page in next(iter(section.values())):
            if "Decisions" in page:
                page["Decisions"] = [f"decisions/{name}" for name in ("README.md", *records)]
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fill in the parts of a page that the code has."""
    mark = "{{ commands }}"
    return markdown.replace(mark, commands()) if mark in markdown else markdown


def on_post_build(config: Any) -> None:
    """Raise when a link of the site leads nowhere, or a page loads something from elsewhere."""
    if found := problems(Path(config.site_dir)):
        raise PluginError("\n".join(found))


def commands() -> str:
    """Return the help of every command, one section each."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    module = importlib.import_module(project["scripts"]["modwatch"].partition(":")[0])
    sections = [
        f"## {name}\n\n```text\n{text.rstrip()}\n```\n"
        for name, text in _helps(click.Context(module.commands, info_name="modwatch"))
    ]
    return "\n".join(sections)


def _helps(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the name and the help of a command and of all commands below it."""
    context.terminal_width = 88
    yield context.command_path, context.get_help()
    if isinstance(context.command, click.Group):
        for name, command in context.command.commands.items():
            yield from _helps(command.context_class(command, info_name=name, parent=context))


def problems(site: Path) -> list[str]:
    """Return what is wrong with the links of the pages in `site`, one sentence each."""
    pages = {path: _Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for tag, attribute, address in page.addresses:
            outside = bool(urlsplit(address).scheme or urlsplit(address).netloc)
            if outside and (tag, attribute) in _LOADED and not address.startswith("data:"):
                found.append(f"{name} loads {address} from another host")
            elif not outside:
                found += _broken(site, path, address, pages)
    for path in sorted([*site.rglob("*.css"), *pages]):
        for address in _STYLE.findall(path.read_text()):
            found.append(f"{path.relative_to(site)} loads {address} from another host")
    return found


def _broken(site: Path, page: Path, address: str, pages: "dict[Path, _Page]") -> list[str]:
    where, anchor = urldefrag(address)
    target = (page.parent / unquote(where)).resolve() if where else page
    if target.is_dir():
        target = target / "index.html"
    if page.name == "404.html":  # its addresses start at the root of a server
        return []
    if not target.exists():
        return [f"{page.relative_to(site)} links to {address}, which does not exist"]
    if anchor and target in pages and unquote(anchor) not in pages[target].anchors:
        return [f"{page.relative_to(site)} links to {address}, which has no such heading"]
    return []


class _Page(HTMLParser):
    """The addresses and anchors of one page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.addresses: list[tuple[str, str, str]] = []
        self.anchors = {"", "__toc"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.anchors.add(value)
            elif value and name in ("href", "src"):
                self.addresses.append((tag, name, value))
