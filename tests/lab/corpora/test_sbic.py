import pandas as pd

from modwatch_lab.corpora import load

COLUMNS = (
    "whoTarget,intentYN,sexYN,sexReason,offensiveYN,annotatorGender,annotatorMinority,sexPhrase,"
    "speakerMinorityYN,WorkerId,HITId,annotatorPolitics,annotatorRace,annotatorAge,post,"
    "targetMinority,targetCategory,targetStereotype,dataSource\n"
)


def row(worker: str, offensive: str, post: str, target: str = "") -> str:
    return f"1.0,1.0,0.0,,{offensive},woman,,,0.0,{worker},H,mod,white,30,{post},{target},,,r/x\n"


def test_one_vote_a_worker_and_post_whatever_the_number_of_targets(tmp_path):
    (tmp_path / "SBIC.v2.trn.csv").write_text(
        COLUMNS
        + row("w1", "1.0", "p", "bakers")
        + row("w1", "1.0", "p", "sailors")
        + row("w2", "0.5", "p", "bakers")
        + row("w3", "0.0", "p")
        + row("w1", "", "q")
    )
    (tmp_path / "SBIC.v2.tst.csv").write_text(COLUMNS + row("w1", "0.0", "r"))
    corpus = load("sbic", tmp_path)
    first, second, third = corpus.items.to_pylist()
    assert (first["label"], first["score"], first["groups"]) == (1, 2 / 3, ["bakers", "sailors"])
    assert (second["label"], second["score"], second["groups"]) == (None, None, [])
    assert third["label"] == 0
    assert corpus.annotations["label"].to_pylist() == [1, 1, 0, None, 0]
    assert corpus.annotators["annotatorGender"].to_pylist() == ["woman"] * 3
    assert (
        load("sbic", tmp_path / "SBIC.v2.tst.csv").items["comment_id"][0].as_py()
        == (third["comment_id"])
    )


def test_parquet_files_with_the_same_columns(tmp_path):
    (tmp_path / "SBIC.v2.dev.csv").write_text(COLUMNS + row("w1", "1.0", "p") + row("w2", "", "q"))
    folder = tmp_path / "parquet"
    folder.mkdir()
    frame = pd.read_csv(tmp_path / "SBIC.v2.dev.csv")
    frame.to_parquet(folder / "SBIC.v2.dev.parquet")
    one, other = load("sbic", tmp_path), load("sbic", folder)
    assert one.items == other.items
    assert one.annotations == other.annotations
