from published import real_data

from modwatch_lab.corpora import load

WHO = "Australia,29.0,4.0,Asian,male,Independent,Buddhism,heterosexual"
RAW = (
    "ID,annotator_id,nationality,age,education,ethnicity,gender,politic,religion,"
    "gender_sexual_orientation,annotation\n"
)
FINAL = (
    "ID,Text,United_States_Hate,Australia_Hate,United_Kingdom_Hate,South_Africa_Hate,"
    "Singapore_Hate,SBIC_ID\n"
)


def test_unsure_votes_are_null_and_the_label_is_the_countries_majority(tmp_path):
    (tmp_path / "CREHate_raw_annotations.csv").write_text(
        RAW + "".join(f"P,{who},{WHO},{vote}\n" for who, vote in (("1", 0), ("2", 1), ("3", 2)))
    )
    (tmp_path / "CREHate_final_annotations.csv").write_text(FINAL + "P,a,1.0,1.0,0.0,1.0,0.0,3\n")
    corpus = load("crehate", tmp_path)
    (item,) = corpus.items.to_pylist()
    assert (item["label"], item["score"]) == (1, 0.5)
    assert corpus.annotations["label"].to_pylist() == [0, 1, None]
    assert corpus.annotators.to_pylist()[0]["religion"] == "Buddhism"


def test_published_release():
    corpus = load("crehate", real_data("crehate/CREHate_raw_annotations.csv.gz").parent)
    assert corpus.items.num_rows == 1580
    assert corpus.annotations.num_rows == 42_546
    assert corpus.annotations["label"].null_count == 3060
    assert corpus.annotators.num_rows == 1064
