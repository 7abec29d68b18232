"""Published files that say something else than the result."""

import json

import pytest
from audit_forger import finders, forge, problems, remarks
from audit_path import go_to

from modwatch.audits import files
from modwatch.audits.publication import Publication
from modwatch.installation.resources import Resources

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy is deprecated")


@pytest.mark.parametrize("name", [files.REPORT, files.AUTOMATED_MEANS_FILE, files.QUALITATIVE_FILE])
def test_a_published_file_is_forged(small: Resources, name: str) -> None:
    go_to(small, "publish")
    content = small.audit_store.read("small")[name]
    forge(small, {name: content.replace(b"ecall", b"ekall", 1)}, redo=False)
    [problem] = problems(small, "files")
    assert problem.startswith(f"{name} does not follow from the result")


def test_a_file_for_transparency_reports_is_left_out(small: Resources) -> None:
    go_to(small, "publish")
    publication = Publication.from_json(small.audit_store.read("small")[files.PUBLICATION])
    bare = Publication(version=publication.version, service=publication.service)
    forge(small, {files.PUBLICATION: bare.to_json()}, redo=False)
    assert {problem.partition(" ")[0] for problem in problems(small, "files")} == {
        files.AUTOMATED_MEANS_FILE,
        files.QUALITATIVE_FILE,
    }


def test_what_the_files_are_made_of_is_forged(small: Resources) -> None:
    """Fewer measures by the model alone, and everything made anew of that."""
    go_to(small, "publish")
    fields = json.loads(small.audit_store.read("small")[files.PUBLICATION])
    for measures in fields["measures"].values():
        measures["solely"] //= 2
    content = (json.dumps(fields, sort_keys=True, indent=1) + "\n").encode()
    forge(small, {files.PUBLICATION: content})
    assert problems(small, "files") == []
    [remark] = remarks(small, "decision log")
    assert remark.startswith("dsa-automated-means.csv counts 200 measures by the model alone")
    assert "lake and log now have 400" in remark
    assert finders(small) == {"register"}


def test_another_version_is_stated_to_have_written_the_report(small: Resources) -> None:
    """Nothing is compared then, and that is told; signatures do not cover it, the register does."""
    go_to(small, "publish")
    folder = small.audit_store.read("small")
    fields = json.loads(folder[files.PUBLICATION]) | {"version": "9.9"}
    forge(
        small,
        {
            files.REPORT: b"<!doctype html>recall is 100 %",
            files.PUBLICATION: (json.dumps(fields, sort_keys=True, indent=1) + "\n").encode(),
        },
        redo=False,
    )
    assert problems(small, "files") == []
    assert any("written by Modwatch 9.9" in message and "not compared" in message
               for message in remarks(small, "files"))  # fmt: skip
    assert finders(small) == {"register"}


def test_the_trend_shows_an_audit_that_there_is_not(small: Resources) -> None:
    go_to(small, "publish")
    folder = small.audit_store.read("small")
    fields = json.loads(folder[files.PUBLICATION])
    fields["earlier"] = [json.loads(folder[files.RESULT]) | {"audit": "2025-12"}]
    content = (json.dumps(fields, sort_keys=True, indent=1) + "\n").encode()
    forge(small, {files.PUBLICATION: content})
    assert problems(small, "files") == []
    assert any(
        "shows audit '2025-12' with another" in message for message in problems(small, "register")
    )


def test_a_publication_that_is_none_is_reported(small: Resources) -> None:
    go_to(small, "publish")
    for content in (b"", b"[]", b"{}", b'{"version": 3, "measures": null}\n'):
        forge(small, {files.PUBLICATION: content}, redo=False)
        [problem] = problems(small, "files")
        assert "publication.json is not what a publication is made of" in problem
