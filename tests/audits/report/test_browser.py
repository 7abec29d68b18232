"""Everybody can read it: both themes, a phone, and on paper."""

from typing import Any

from axe_playwright_python.sync_playwright import Axe

from modwatch.audits.report import render_report

RULES = {
    "resultTypes": ["violations"],
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}

#: Screens by width and theme.
SCREENS = [(1100, "dark"), (390, "light")]


def test_it_is_accessible_fits_and_prints(chromium, adaptive, result, earlier, tmp_path):
    name = "W" * 300
    chain = adaptive.chain[:-1]
    result["domains"] = [domain | {"value": name, "column": name} for domain in result["domains"]]
    report = render_report(adaptive.plan, result, chain, earlier(5), service=name)
    file = tmp_path / "report.html"
    file.write_text(report, "utf-8")
    for width, theme in SCREENS:
        complaints: list[str] = []
        viewport: Any = {"width": width, "height": 800}
        with chromium.new_context(viewport=viewport, color_scheme=theme) as context:  # type: ignore[arg-type]
            page = context.new_page()
            page.on("console", lambda message, kept=complaints: kept.append(message.text))
            page.goto(file.as_uri())
            assert complaints == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            found = Axe().run(page, options=RULES).response["violations"]
            assert [
                (match["id"], [n["html"][:200] for n in match["nodes"]]) for match in found
            ] == []
            page.emulate_media(media="print")
            page.set_viewport_size({"width": 680, "height": 960})
            assert page.evaluate("document.documentElement.scrollWidth") <= 680
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == "rgb(255, 255, 255)"
