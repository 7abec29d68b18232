"""Published files that say something else than the result."""

import json
from dataclasses import replace
from html import unescape
from typing import Any

import pytest
from audit_forger import finders, forge, problems, remarks
from audit_path import go_to
from small_audits import REQUEST, begin

from modwatch.audits import files
from modwatch.audits.publication import Publication, level_of_files
from modwatch.common.errors import AuditError
from modwatch.installation.resources import Resources
from modwatch.review.people.accounts import create_moderator
from review.labelling import label_all

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


def of_publication(resources: Resources) -> dict[str, Any]:
    """Return what the published files are made of."""
    return json.loads(resources.audit_store.read("small")[files.PUBLICATION])


def written(fields: dict[str, Any]) -> bytes:
    return (json.dumps(fields, sort_keys=True, indent=1) + "\n").encode()


@pytest.mark.parametrize("name", [files.REPORT, files.AUTOMATED_MEANS_FILE, files.QUALITATIVE_FILE])
def test_a_published_file_is_forged(published, name):
    content = published.audit_store.read("small")[name]
    forge(published, {name: content.replace(b"ecall", b"ekall", 1)}, redo=False)
    [problem] = problems(published, "files")
    assert problem.startswith(f"{name} does not follow from the result")


def test_a_file_for_transparency_reports_is_left_out(published):
    publication = Publication.from_json(published.audit_store.read("small")[files.PUBLICATION])
    bare = Publication(version=publication.version, service=publication.service)
    forge(published, {files.PUBLICATION: bare.to_json()}, redo=False)
    assert {problem.partition(" ")[0] for problem in problems(published, "files")} == {
        files.AUTOMATED_MEANS_FILE,
        files.QUALITATIVE_FILE,
    }


def test_what_the_files_are_made_of_is_forged(published):
    """Fewer measures by the model alone, and everything made anew of that."""
    fields = of_publication(published)
    for measures in fields["measures"].values():
        measures["solely"] //= 2
    forge(published, {files.PUBLICATION: written(fields)})
    assert problems(published, "files") == []
    remark = remarks(published, "decision log")[0]
    assert remark.startswith("dsa-automated-means.csv counts 200 measures by the model alone")
    assert "lake and log now have 400" in remark
    assert finders(published) == {"register"}


def test_another_version_is_stated_to_have_written_the_report(published):
    """Nothing is compared then, and that is told; signatures do not cover it, the register does."""
    fields = of_publication(published) | {"version": "9.9"}
    changes = {
        files.REPORT: b"<!doctype html>recall is 100 %",
        files.PUBLICATION: written(fields),
    }
    forge(published, changes, redo=False)
    assert problems(published, "files") == []
    assert any("written by Modwatch 9.9" in message and "not compared" in message
               for message in remarks(published, "files"))  # fmt: skip
    assert finders(published) == {"register"}


def test_the_trend_shows_an_audit_that_there_is_not(published):
    result = json.loads(published.audit_store.read("small")[files.RESULT])
    fields = of_publication(published) | {"earlier": [result | {"audit": "2025-12"}]}
    forge(published, {files.PUBLICATION: written(fields)})
    assert problems(published, "files") == []
    assert any(
        "shows audit '2025-12' with another" in message
        for message in problems(published, "register")
    )


def test_a_publication_that_is_none_is_reported(published):
    for content in (b"", b"[]", b"{}", b'{"version": 3, "measures": null}\n'):
        forge(published, {files.PUBLICATION: content}, redo=False)
        [problem] = level_of_files(published.audit_store.read("small")).problems
        assert "publication.json is not what a publication is made of" in problem


def test_an_audit_that_was_cancelled_for_its_labels_is_published(small):
    """The attack was: label, look, cancel and plan another, of which the report says nothing."""
    begin(small, replace(REQUEST, audit="try"))
    for name in ("cid", "dan"):  # nobody labels a comment twice
        labeller = create_moderator(small.database, name, "moderator")
        label_all(small.database, labeller, lambda _: 1)
    small.audit("try").seal()
    given = len(files.read_labels(small.audit_store.read("try")[files.labels_file(1)]))
    small.audit("try").cancel(actor="eve", note="by and by")
    go_to(small, "publish")
    sentence = f"when people had given {given} labels, before this audit was planned."
    folder = small.audit_store.read("small")
    for name in (files.AUTOMATED_MEANS_FILE, files.QUALITATIVE_FILE):
        assert sentence in folder[name].decode()
    assert sentence in unescape(folder[files.REPORT].decode())
    assert any(sentence in remark for remark in level_of_files(folder).remarks)
    assert small.audit("small").verify() == []

    # It is left out of the report, or shown as another.
    for change in ({"labels": 0}, {"action": "planned"}, {"audit": "other"}):
        fields = json.loads(folder[files.PUBLICATION])
        fields["others"][0] |= change
        forge(small, {files.PUBLICATION: written(fields)})
        assert problems(small, "files") == []
        assert "the report leaves out audit 'try' of the same days, or shows another" in " ".join(
            problems(small, "register")
        )


@pytest.mark.parametrize("change", [{"labels": "57"}, {"at": "x"}, {"at": 1}, {"more": 1}], ids=str)
def test_another_audit_that_cannot_be_read_is_a_problem(change):
    """Of another version, so that the files are not compared with the result."""
    other: dict[str, object] = {
        "audit": "try",
        "first": "2026-01-05",
        "last": "2026-01-06",
        "action": "cancelled",
        "at": "2026-01-07T00:00:00+00:00",
        "labels": 57,
    }
    fields = json.loads(Publication(version="9.9").to_json()) | {"others": [other | change]}
    with pytest.raises(AuditError, match=r"it was edited|is not in ISO 8601"):
        Publication.from_json(written(fields))
