import json

import pytest
from published import real_data

from modwatch.common.errors import SourceError
from modwatch_lab.corpora import load


def entry(**changes: object) -> dict:
    usual = {"text": "a", "annotations": "0,1,1", "annotators": "A1,A2,A3", "split": "dev"}
    return usual | changes


def test_votes_pair_up_with_their_annotators(tmp_path):
    entries = {"1": entry(), "2": entry(annotators="A1"), "3": entry(annotations=None)}
    (tmp_path / "MD-Agreement_dev.json").write_text(json.dumps(entries))
    corpus = load("md_agreement", tmp_path)
    (item,) = corpus.items.to_pylist()
    assert (item["comment_id"], item["label"], item["score"]) == ("dev-1", 1, 2 / 3)
    assert corpus.annotations["annotator_id"].to_pylist() == ["A1", "A2", "A3"]
    assert corpus.left_out == {"malformed_record": 2}


@pytest.mark.parametrize(
    ("content", "message"), [("{", "not readable JSON"), ("[]", "not an object of items")]
)
def test_another_file_is_refused(tmp_path, content, message):
    path = tmp_path / "MD-Agreement_dev.json"
    path.write_text(content)
    with pytest.raises(SourceError, match=message):
        load("md_agreement", path)


def test_published_release():
    corpus = load("md_agreement", real_data("md_agreement/MD-Agreement_dev.json.gz").parent)
    assert corpus.items.num_rows == 10_753
    assert corpus.annotations.num_rows == 5 * 10_753
    assert corpus.left_out == {}
