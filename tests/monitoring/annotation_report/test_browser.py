"""The page in a browser: accessible, in both themes, on a phone, and it loads nothing."""

from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

from modwatch.common.account import Account
from modwatch.monitoring.annotation_report import (
    AnnotationTable,
    annotation_report,
    rows_section,
    write_report,
)
from modwatch.statistics.disagreement import Annotations

#: Screens by width and theme.
SCREENS = [(1100, "light"), (390, "dark")]
RULES = {"resultTypes": ["violations"], "runOnly": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"]}


@pytest.fixture
def written(tmp_path):
    """Write the page of three groups, one of which has a long name that could be markup."""
    rng = np.random.default_rng(0)
    items, people = 100, 120
    share = rng.beta(0.6, 1.2, items)
    likely = np.clip(share[:, None] - 0.25 * (np.arange(people) >= 80), 0, 1)
    annotations = Annotations.from_columns(
        item=np.repeat(np.arange(items), people), annotator=np.tile(np.arange(people), items),
        label=(rng.random((items, people)) < likely).ravel().astype(int),
    )  # fmt: skip
    names = ("north", "<b>south</b> " + "W" * 300, "west")
    groups = {person: names[person // 40] for person in range(people)}
    report = annotation_report(annotations, y_prob=share, groups={"country": groups})
    account = Account(read=items * people + 3)
    account.count("header")
    account.count("no_label", 2, where=f"{'w' * 60}.csv, line 7")
    account.count("used", items * people)
    table = AnnotationTable(
        annotations=annotations, y_prob=None, groups={}, account=account, notes=("W" * 300,)
    )
    return write_report(report, tmp_path / "out", more=[rows_section(table)])


def test_it_is_accessible_fits_and_loads_nothing(chromium, written):
    for width, theme in SCREENS:
        complaints: list[str] = []
        requests: list[str] = []
        viewport: Any = {"width": width, "height": 800}
        with chromium.new_context(viewport=viewport, color_scheme=theme) as context:
            page = context.new_page()
            page.on("console", lambda message, kept=complaints: kept.append(message.text))
            page.on("request", lambda request, kept=requests: kept.append(request.url))
            page.goto(written.as_uri())
            assert page.locator("details[open]").count() == 1, "where the rows went"
            page.locator("details").evaluate_all("all => all.forEach(one => (one.open = true))")
            assert complaints == []
            assert [url for url in requests if not url.startswith("data:")] == [written.as_uri()]
            pictures = page.locator("img")
            assert pictures.count() == 3, "agreement, kappa and clusters"
            drawn = "images => images.every(each => each.naturalWidth > 0 && each.alt)"
            assert pictures.evaluate_all(drawn)
            assert page.locator("td, th").get_by_text("<b>south</b>").count() > 0
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            found = Axe().run(page, options=RULES).response["violations"]
            assert [
                (problem["id"], [n["html"][:200] for n in problem["nodes"]]) for problem in found
            ] == []
