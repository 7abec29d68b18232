"""What the documentation site takes from the code, and the check of the built pages.

MkDocs calls the functions that begin with `on_`.
"""

import importlib
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import click
from mkdocs.exceptions import PluginError

from modwatch.audits.dsa.findings import RULES
from modwatch.review.policy.tree import load_policy
from modwatch.settings.fields import variables
from modwatch.settings.sources import SOURCES
from modwatch.settings.tables import in_one_line
from modwatch.statistics.collaboration.review_strategies import REVIEW_SCORES
from modwatch.statistics.live.figures import FIGURES

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
    """Fill in the parts of a page that the code has, such as `{{ commands }}`."""
    return re.sub(r"\{\{ (\w+) \}\}", lambda mark: PARTS[mark[1]](), markdown)


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


def table_of_settings() -> str:
    """Return every setting. One that several kinds of sources have stands there once.

    A kind of another package, as of the laboratory, is described where it is.
    """
    kinds = dict[tuple[str, str, str], list[str]]()
    for variable in variables():
        if variable.source and not SOURCES[variable.source].__module__.startswith("modwatch."):
            continue
        value = variable.info.get_default(call_default_factory=True)
        default = "required" if variable.info.is_required() else _code(in_one_line(value))
        row = (variable.name, default, str(variable.info.description))
        kinds.setdefault(row, []).extend([variable.source] if variable.source else [])
    rows = []
    for (name, default, meaning), sources in kinds.items():
        prefix = f"source {', '.join(map(_code, sources))}: " if sources else ""
        rows.append((_code(name), default, prefix + meaning))
    return _table("variable | default | meaning", rows)


def table_of_figures() -> str:
    """Return the figures from labels, and their keys in MLflow."""
    rows = []
    for figure in FIGURES.values():
        low, high = (f"{end:g}".replace("inf", "∞") for end in figure.range)
        groups = (figure.group, *(("single_day",) if figure.of_day else ()))
        names = ", ".join(_code(f"{group}/{figure.key}") for group in groups)
        rows.append((figure.title, names, f"{low} to {high}", figure.better or "–", figure.meaning))
    return _table("figure | key in MLflow | range | better | meaning", rows)


def table_of_review_scores() -> str:
    """Return the review strategies."""
    rows = []
    for score in REVIEW_SCORES.values():
        needed = ", ".join(map(_code, score.needs)) or "–"
        ties = _code(score.ties) or "chance"
        rows.append((_code(score.name), score.meaning, score.serves, needed, ties))
    return _table("strategy | score | serves | columns | ties", rows)


def table_of_dsa_rules() -> str:
    """Return the rules of a DSA report."""
    rows = [(_code(code), rule.severity, rule.requirement) for code, rule in RULES.items()]
    return _table("rule | severity | requirement", rows)


def table_of_policy_codes() -> str:
    """Return the codes of the built-in policy."""
    rows = []
    for node in load_policy().nodes:
        texts = [
            f"**{node.title.in_locale(locale)}.** {node.description.in_locale(locale)}"
            for locale in ("en", "de")
        ]
        category = (node.dsa_category or "").removeprefix("STATEMENT_CATEGORY_")
        keyword = (node.dsa_keyword or "").removeprefix("KEYWORD_")
        rows.append((_code(node.code), node.key or "", str(node.label), *texts, category, keyword))
    heads = "code | key | label | in English | in German | DSA category | DSA keyword"
    return _table(heads, rows)


def table_of_policy_reasons() -> str:
    """Return the reasons of the built-in policy."""
    rows = [
        (action, _code(reason), title.in_locale("en"), title.in_locale("de"))
        for action, reasons in load_policy().reasons.items()
        for reason, title in reasons.items()
    ]
    return _table("to | reason | in English | in German", rows)


def _code(text: str | None) -> str:
    return f"`{text}`" if text else ""


def _table(heads: str, rows: Iterable[Sequence[str]]) -> str:
    escaped = [" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows]
    rule = "|".join(["---"] * (heads.count("|") + 1))
    return "\n".join(f"| {line} |" for line in (heads, rule, *escaped))


def _helps(context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the name and the help of a command and of all commands below it."""
    context.terminal_width = 88
    yield context.command_path, context.get_help()
    if isinstance(context.command, click.Group):
        for name, command in context.command.commands.items():
            yield from _helps(command.context_class(command, info_name=name, parent=context))


#: What a mark in a page stands for.
PARTS: dict[str, Callable[[], str]] = {
    "commands": commands,
    "settings": table_of_settings,
    "figures": table_of_figures,
    "review_scores": table_of_review_scores,
    "dsa_rules": table_of_dsa_rules,
    "policy_codes": table_of_policy_codes,
    "policy_reasons": table_of_policy_reasons,
}


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
