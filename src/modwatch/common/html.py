"""Self-contained HTML pages: they open from disk, load nothing and run no script."""

import base64
import hashlib
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render_html(package: str, template: str, **context: Any) -> str:
    """Return a page from a template of `package`, with every value of `context` escaped.

    Templates may extend `layout.html` of this package, which has the style sheet of all pages, and
    a Content-Security-Policy that allows this style sheet and nothing else.

    Raises:
        jinja2.UndefinedError: the template uses a name that `context` lacks.

    >>> page = render_html("modwatch.data.validation", "index.html", lines=[])
    >>> "<title>Data validation</title>" in page
    True
    """
    # The style sheet is a file of this package; escaped, it would not match its hash.
    style = Markup(  # noqa: S704
        resources.files("modwatch.common").joinpath("templates/page.css").read_text("utf-8")
    )
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    page = _environment(package).get_template(template)
    return page.render(style=style, style_hash=f"sha256-{digest}", **context)


@cache
def _environment(package: str) -> Environment:
    """Return what reads the templates of a package, and keeps them compiled."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("modwatch.common")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
