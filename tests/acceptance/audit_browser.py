"""An auditor with a browser in Airflow's pages, and pictures of what they see."""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from acceptance.audit_runs import DAG, FORM, Audits, eventually
from acceptance.daily_pages import leave
from modwatch.pipeline.airflow.audit_form import FORM as FIELDS
from modwatch.pipeline.airflow.audits import CANCEL, STOP

_PATIENCE_MS = 180_000
expect.set_options(timeout=_PATIENCE_MS)

#: Where pictures go, if anywhere. The environment of the tests is another.
_PICTURES = os.environ.get("SCREENSHOTS")


@dataclass(frozen=True, kw_only=True)
class Auditor:
    """Someone who audits with a browser."""

    airflow: Audits
    browser: Browser

    @contextmanager
    def logged_in(self) -> Iterator[Page]:
        """Yield a page of someone who has logged in to Airflow."""
        viewport: Any = {"width": 1280, "height": 1100}
        with self.browser.new_context(viewport=viewport, color_scheme="light") as context:
            page = context.new_page()
            page.set_default_timeout(_PATIENCE_MS)
            page.goto(self._url)
            page.get_by_label("Username").fill("admin")
            page.get_by_label("Password").fill(self.airflow.demo.airflow.password)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url(f"{self._url}/")
            yield page

    def fill_in_the_form(self, page: Page, audit: str) -> None:
        """Open the form, see that every field has its help, fill some in, and press Trigger."""
        page.goto(f"{self._url}/dags/{DAG}")
        page.get_by_role("button", name="Trigger").first.click()
        form = page.get_by_role("dialog")
        for field in ("audit", "first", "last", "service", "labels"):
            form.locator(f"[name=element_{field}]").wait_for()  # nobody has to look for these
        for name, value in {**FORM, "audit": audit}.items():
            if name in ("audit", "first", "last", "service", "labels"):
                form.locator(f"[name=element_{name}]").fill(str(value))
        self._picture(page, "audit-form")
        self._see_all_fields(form)
        _open(form, FIELDS["confirmed_share"].schema["section"])
        share = form.locator("[name=element_confirmed_share]")
        share.fill(str(FORM["confirmed_share"]))
        # A switch, whose input is hidden: there is one user of Airflow.
        form.locator("[name=element_four_eyes]").dispatch_event("click")
        form.get_by_role("button", name="Trigger").click()
        page.wait_for_url("**/runs/manual__*")
        self.airflow.runs[audit] = page.url.rpartition("/runs/")[2]
        leave(page)

    def approve(self, page: Page, audit: str, note: str) -> None:
        """Find the question among all required actions, read the plan, and approve it."""
        self.airflow.until(audit, "approve", "awaiting_input")
        page.goto(f"{self._url}/required_actions")
        link = page.get_by_role("link", name=f"Approve the plan of audit {audit}", exact=True)
        # Not a click: the list moves while other audits are answered.
        page.goto(urljoin(page.url, link.get_attribute("href")))
        expect(
            page.get_by_text(re.compile("120 comments to label, and about [0-9]+ confirmations"))
        ).to_be_visible()
        expect(page.get_by_role("cell", name="unflagged").first).to_be_visible()
        page.locator("[name=element_note]").fill(note)
        self._picture(page, "audit-approve")
        self.airflow.settle(audit, "approve")
        with page.expect_response(lambda response: response.request.method == "PATCH") as approved:
            page.get_by_role("button", name="Approve", exact=True).click()
        assert approved.value.ok
        leave(page)

    def watch_the_labels(self, page: Page, audit: str, words: str) -> None:
        """See how far the labels are, and that they could be stopped."""
        self.airflow.until(audit, "label", "deferred")
        eventually(lambda: words in str(self.airflow.log(audit, "label")))
        page.goto(f"{self._url}/dags/{DAG}/runs/{self.airflow.runs[audit]}/tasks/label")
        expect(page.get_by_text(words).first).to_be_visible()
        page.get_by_role("link", name="Required Action").click()
        for answer in (STOP, CANCEL):
            expect(page.get_by_role("button", name=answer)).to_be_visible()
        self._picture(page, "audit-waiting")
        leave(page)

    def read_the_report(self, page: Page, audit: str, recall: Mapping[str, Any]) -> None:
        """Open the published report, and find recall with its interval."""
        page.goto((self.airflow.evidence(audit) / "report.html").as_uri())
        row = page.get_by_role("row").filter(has_text="Recall: of the comments").first
        shown = re.findall(r"\d+(?:\.\d+)?", row.locator("td").nth(0).inner_text())
        shown += re.findall(r"\d+(?:\.\d+)?", row.locator("td").nth(1).inner_text())
        result = [100 * recall[end] for end in ("value", "low", "high")]
        assert [float(number) for number in shown] == pytest.approx(result, abs=0.51)
        self._picture(page, "audit-report")

    @property
    def _url(self) -> str:
        return str(self.airflow.demo.airflow.url)

    def _see_all_fields(self, form: Locator) -> None:
        for field in FIELDS.values():
            if section := field.schema.get("section"):
                _open(form, section)
            expect(form.get_by_text(field.description, exact=True)).to_be_visible()
            expect(form.get_by_text(field.schema["title"]).first).to_be_visible()

    def _picture(self, page: Page, name: str) -> None:
        if _PICTURES:
            page.screenshot(path=Path(_PICTURES) / f"{name}.png")


def _open(form: Locator, section: str) -> None:
    """Open a section of the form unless it is open: a click on an open one closes it."""
    header = form.get_by_role("button", name=section)
    if header.get_attribute("aria-expanded") != "true":
        header.click()
    expect(header).to_have_attribute("aria-expanded", "true")
