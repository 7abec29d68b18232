"""The report of a long table: what it says, what it hides, what it refuses."""

import io
import re
from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from disagreeing_people import world

from modwatch.cli.main import main
from modwatch.common.errors import MetricInputError, SourceError
from modwatch.monitoring.annotation_report import (
    annotation_report,
    read_annotations,
    render_page,
)
from modwatch.monitoring.annotation_report.figures import report_figures
from modwatch.statistics.disagreement import Annotations


def long_table(*, seed=0, items=300, people=24, bias=0.0, slips=0.0):
    """Return a long table; the second half of the people, strictland, see other toxicity."""
    rng = np.random.default_rng(seed)
    share = rng.beta(0.6, 1.2, items)
    strict = np.arange(people) >= people // 2
    likely = np.clip(share[:, None] + bias * strict, 0, 1)
    label = rng.random((items, people)) < likely
    label ^= rng.random(label.shape) < slips
    return pd.DataFrame(
        {
            "item": np.repeat([f"i-{row}" for row in range(items)], people),
            "annotator": np.tile([f"worker-{row}" for row in range(people)], items),
            "label": label.ravel().astype(int),
            "prob": np.repeat(share.round(4), people),
            "country": np.tile(np.where(strict, "strictland", "mildland"), items),
            "age": np.tile([f"{20 + 10 * (row % 2)}s" for row in range(people)], items),
        }
    )


def annotations_of(table):
    return Annotations.from_columns(
        item=table["item"], annotator=table["annotator"], label=table["label"]
    )


def report_of(table, *, grouping="country", prob=True, **options):
    return annotation_report(
        annotations_of(table),
        y_prob=table.drop_duplicates("item")["prob"] if prob else None,
        groups={grouping: table.drop_duplicates("annotator").set_index("annotator")[grouping]},
        **options,
    )


def written(table, path):
    table.to_csv(path, index=False)
    return path


def text_of(report):
    return " ".join(re.sub("<[^>]*>", " ", render_page(report)).split())


def test_a_planted_bias_is_named_with_its_interval_and_no_other_difference():
    report = report_of(long_table(bias=-0.25))
    page = render_page(report)
    assert "annotators of the group strictland" in page
    assert "under 0.001" in page or "p = 0.0" in page
    for text in (page, *(table.to_csv() for table in report.tables().values())):
        assert not re.search(r"worker-|i-1", text)  # no one and nothing is named
    same = render_page(report_of(long_table(bias=0.0)))
    assert "by no more than chance" in same
    assert "annotators of the group" not in same


def test_small_groups_are_counted_and_not_named():
    table = long_table()
    country = table["annotator"].map(
        lambda name: "rareland" if name in {"worker-0", "worker-1"} else "mildland"
    )
    table["country"] = country.where(table["annotator"] < "worker-2", "otherland")
    report = report_of(table)
    page = render_page(report)
    assert "rareland" not in page
    assert "not shown" in page
    for table in report.tables().values():
        assert "rareland" not in table.to_csv()


def fewest_told_of(clusters, groups):
    """Return the fewest people of whom sizes of groups and clusters, and shown shares, tell."""
    share = clusters.found.group_share
    pairs = np.stack([groups.code, clusters.found.cluster])
    cells, people = np.unique(pairs, axis=1, return_counts=True)
    rows = [np.ones(len(people))]
    rows += [cells[side] == number for side in (0, 1) for number in np.unique(cells[side])]
    for number, (group, cluster) in enumerate(cells.T):
        if group >= 0 and not np.isnan(share[cluster, group]):
            rows.append(np.arange(len(people)) == number)
    equations = np.array(rows, float)
    rank = np.linalg.matrix_rank(equations)
    small = [cell for cell in range(len(people)) if people[cell] < 5]
    subsets = (subset for size in (1, 2, 3, 4) for subset in combinations(small, size))
    derivable = [
        people[list(subset)].sum()
        for subset in subsets
        if np.linalg.matrix_rank(np.delete(equations, subset, axis=1)) < rank
    ]
    return min(derivable, default=np.inf)


def test_shares_of_groups_in_clusters_tell_of_no_few_people():
    seed = 0
    table = long_table(seed=seed, people=300, items=60, bias=-0.3)
    people = table.drop_duplicates("annotator").set_index("annotator")
    rng = np.random.default_rng(seed)
    few = people["country"].mask(rng.random(len(people)) < 0.1, "thirdland")
    table["country"] = table["annotator"].map(few)
    report = report_of(table)
    (grouping,) = report.groupings
    clusters = grouping.clusters
    assert fewest_told_of(clusters, grouping.groups) >= 5
    share, number = clusters.found.group_share, len(grouping.groups.names)
    pairs = zip(clusters.found.cluster, grouping.groups.code, strict=True)
    people_in = Counter(pair for pair in pairs if pair[1] >= 0)
    assert np.isnan(share).any()
    assert (share > 0).any()
    for pair in np.ndindex(4, number):
        assert np.isnan(share[pair]) or not 0 < people_in[pair] < 5
    figure = report_figures(report)["clusters_country"]
    shown = [label.get_text() for axes in figure.axes[1::2] for label in axes.get_yticklabels()]
    assert sum("not shown" in line for line in shown) == np.isnan(share).sum()
    found = clusters.found
    sentence = (
        f"demographic divergence {found.value:.3f}, {found.low:.3f} to {found.high:.3f}, p = "
    )
    assert sentence in render_page(report)


def test_kappa_within_and_between_groups_has_intervals_on_the_page():
    report = report_of(long_table(bias=-0.25), prob=False)
    assert report.metrics_table is None
    assert set(report_figures(report)) >= {"kappa_country"}
    assert "agreement_country" not in report_figures(report)
    page = text_of(report)
    assert "How far do people agree?" in page
    kappa = report.groupings[0].kappa.set_index(["group", "other"])
    for pair, with_whom in (
        (("mildland", "mildland"), "itself"),
        (("mildland", "strictland"), "strictland"),
        (("strictland", "strictland"), "itself"),
    ):
        row = kappa.loc[pair]
        assert row["low"] < row["kappa"] < row["high"]
        line = f"{row['kappa']:.3f} {row['low']:.3f} {row['high']:.3f} {row['items']:.0f}"
        assert f"{pair[0]} {with_whom} {line}" in page
    mild = kappa.loc[("mildland", "mildland")]
    assert (
        f"{mild['kappa']:.3f} ({mild['low']:.3f} to {mild['high']:.3f}) in the group mildland"
    ) in page
    pd.testing.assert_frame_equal(report.tables()["kappa_country"], report.groupings[0].kappa)


def test_groups_without_shared_items_have_no_kappa_and_say_so():
    table = long_table(items=20)
    page = render_page(report_of(table, prob=False))
    assert "In no group did people label 30 of the same items" in page
    assert "nan" not in page


def three_labels(**options):
    """Return a long table of labels a, b and c, with the probability of each."""
    table = long_table(**options)
    more = (table["item"].str.len() + table["annotator"].str.len()) % 2
    table["label"] = (table["label"] + more).map({0: "a", 1: "b", 2: "c"})
    share = table.pop("prob")
    return table.assign(prob_a=0.7 * (1 - share), prob_b=0.3, prob_c=0.7 * share)


def test_three_labels_without_a_model_have_no_table_of_groups_but_kappa():
    report = report_of(three_labels(), prob=False)
    assert report.classes == ("a", "b", "c")
    assert report.groupings[0].table is None
    assert len(report.groupings[0].kappa) == 3
    assert render_page(report)


def test_three_labels_with_a_probability_each_have_all_figures(tmp_path):
    table = three_labels(bias=-0.25)
    found = read_annotations(written(table, tmp_path / "mine.csv"), groups=["country"])
    assert found.y_prob.shape == (300, 3)
    report = annotation_report(found.annotations, y_prob=found.y_prob, groups=found.groups)
    assert report.metrics_table.loc["auroc", "adjusted"] > 0.5
    rows = report.groupings[0].table.set_index(["metric", "group"])
    decided = found.y_prob.argmax(axis=1)[found.annotations.item] == found.annotations.label
    strict = table["country"].to_numpy() == "strictland"
    assert rows.loc[("agreement", "strictland"), "value"] == pytest.approx(decided[strict].mean())
    assert "Difference, low" in render_page(report)


@pytest.mark.parametrize("prob", [True, False])
def test_the_page_compares_people_with_a_majority_that_they_did_not_make(prob):
    report = report_of(long_table(people=3), prob=prob)
    value, low, high = report.agreement["majority", "raw"].known
    assert low < value < high < report.most
    page = text_of(report)
    assert "slips taken out, it agrees with an unknown share of people" in page
    assert f"equals {value:.1%} (95 % interval {low:.1%} to {high:.1%}) of all labels" in page
    assert f"can equal more than {report.most:.1%} of these labels" in page
    assert (("model", "raw") in report.agreement) == prob == ("of that majority&#39;s" in page)


def camps(*, slips=0.1):
    """Return a long table of two camps who disagree about half of the items."""
    table = long_table(slips=slips)
    item, person = (table[name].str.split("-").str[1].astype(int) for name in ("item", "annotator"))
    slip = np.random.default_rng(5).random(len(table)) < slips
    return table.assign(label=(item % 2) ^ ((item // 2 % 2) & (person % 2)) ^ slip)


def test_slips_without_retests_are_at_most_a_share():
    report = report_of(camps())
    assert report.rates.method == "svd"
    page, high = text_of(report), report.rates.rates("high").mean()
    assert 0.1 < high < 0.2
    assert f"At most {high:.1%} of the labels are slips." in page
    _, low, high = report.agreement["majority", "adjusted"].known
    assert f"it agrees with {low:.1%} to {high:.1%} of people" in page
    assert low == report.agreement["majority", "raw"].low
    metrics = report.metrics()
    assert "disagreement/flip_rate_high" in metrics
    assert not {"disagreement/flip_rate", "disagreement/model_adjusted"} & set(metrics)


def test_flip_rates_of_strata_have_a_picture():
    made = world(0, items=2_000, annotators=20, hard=True)
    report = annotation_report(made.annotations)
    assert report.rates.method == "strata"
    assert "flip_rates" in report_figures(report)
    assert "disagreement/flip_rate" in report.metrics()


def test_where_flip_rates_cannot_be_estimated_the_page_goes_on():
    table = pd.DataFrame(
        {"item": range(40), "annotator": [f"w{row}" for row in range(40)], "label": [0, 1] * 20}
    )
    report = annotation_report(annotations_of(table))
    assert report.rates is None
    assert "The data do not tell" in render_page(report)
    page = text_of(report_of(long_table(people=1)))
    assert "an unknown share (no item has labels of two annotators)" in page


def test_rows_in_another_order_give_the_same_figures_and_retests_are_counted():
    table = long_table(bias=-0.2, items=100)
    columns = ["group", "metric", "value", "low", "high"]
    one = report_of(table)
    two = report_of(table.sample(frac=1, random_state=3))
    pd.testing.assert_frame_equal(one.groupings[0].table[columns], two.groupings[0].table[columns])
    again = table.assign(label=1 - table["label"]).iloc[:900]
    assert report_of(pd.concat([table, again], ignore_index=True)).retests == 900


def test_metrics_have_at_most_sixty_keys_and_no_names_of_groups():
    report = report_of(long_table(bias=-0.2))
    (one,) = report.groupings
    many = tuple(replace(one, name=f"grouping {number}") for number in range(20))
    keys = replace(report, groupings=many).metrics()
    assert len(keys) <= 60
    assert not [key for key in keys if "land" in key]
    assert keys["groups_grouping_0/significant"] >= 0


def test_the_command_writes_page_and_tables(tmp_path, capsys):
    path = written(long_table(bias=-0.25), tmp_path / "mine.csv")
    out = tmp_path / "out"
    arguments = ["--group", "country", "--group", "country,age", "--output", str(out)]
    assert main(["annotations", "report", str(path), *arguments]) == 0
    assert "7,200 annotations of 300 items" in capsys.readouterr().out
    page = (out / "report.html").read_text()
    assert "country and age" in page
    assert (out / "groups_country_age.csv").exists()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_the_fits_of_a_factorisation_and_a_pipe_does_not(tmp_path, monkeypatch):
    path = str(written(long_table(items=60), tmp_path / "mine.csv"))
    for stream, ending in ((Terminal(), "12/12"), (io.StringIO(), "")):
        monkeypatch.setattr("sys.stderr", stream)
        assert main(["annotations", "report", path, "--output", str(tmp_path / "out")]) == 0
        assert stream.getvalue().strip().endswith(ending)
        assert bool(stream.getvalue()) == bool(ending)


def test_json_lines_and_other_names_of_columns(tmp_path):
    table = long_table(items=30).rename(columns={"item": "post", "label": "vote"})
    table.to_json(tmp_path / "mine.jsonl", orient="records", lines=True)
    columns = {"item": "post", "label": "vote"}
    found = read_annotations(tmp_path / "mine.jsonl", columns=columns)
    assert len(found.annotations.items) == 30
    assert found.y_prob.shape == (30,)


def test_time_orders_the_labels(tmp_path):
    table = pd.DataFrame(
        {
            "item": ["a", "a", "b", "b"], "annotator": ["x", "x", "x", "y"],
            "label": ["1", "0", "1", "0"],
            "time": ["2026-01-02", "2026-01-01T10:00:00Z", "2026-01-01", "2026-01-01"],
        }
    )  # fmt: skip
    found = read_annotations(written(table, tmp_path / "mine.csv"))
    (retest,) = found.annotations.retests.second
    assert found.annotations.classes[retest] == "1"


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda t: t.drop(columns="label"), "has no column 'label'"),
        (lambda t: t.assign(prob=1.5), r"240 values of prob .* outside \[0, 1\]"),
        (lambda t: t.assign(prob=[None, *t["prob"][1:]]), "1 values of prob are missing"),
        (lambda t: t.assign(prob=np.arange(240) / 240), "prob differs within an item"),
        (lambda t: t.assign(label=[2, *t["label"][1:]]), "there are 3 labels.* column prob_LABEL"),
        (lambda t: t.assign(country=[f"c{n}" for n in range(240)]), "24 annotators have several"),
        (
            lambda t: t.assign(time="yesterday"),
            r"most of 240 records are left out: unreadable_timestamp 240 .* ISO 8601",
        ),
        (lambda t: t.assign(prob_0=0.5).drop(columns="prob"), "some labels, and none of prob_1"),
        (
            lambda t: t.assign(prob_0=0.5, prob_1=0.2).drop(columns="prob"),
            "the columns prob_LABEL of 10 items do not sum to 1",
        ),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_without_quoting_it(tmp_path, change, match):
    path = written(change(long_table(items=10)), tmp_path / "mine.csv")
    with pytest.raises(SourceError, match=match) as error:
        read_annotations(path, groups=["country"])
    assert "worker" not in str(error.value)
    assert "yesterday" not in str(error.value)


@pytest.mark.parametrize(
    ("change", "options", "match"),
    [
        (lambda t: t.assign(label=1), {}, "all 240 labels are alike; name .*--classes"),
        (lambda t: t.assign(label=[f"c{n}" for n in range(240)]), {},
         "2 to 100 different classes, got 240$"),
        (lambda t: t, {"toxic_from": 0.5, "classes": ["0", "1"]}, "leave out --classes"),
        (lambda t: t, {"toxic_from": 2}, "240 labels are alike; choose another --toxic-from"),
        (lambda t: t.iloc[:0], {}, "mine.csv: there is no annotation"),
        (lambda t: t, {"classes": ["0", "2"]}, "labels are outside the 2 classes"),
        (lambda t: t, {"groups": ["planet"]}, "has no column 'planet'"),
        (lambda t: t, {"groups": [""]}, "there is one without a name"),
        (lambda t: t, {"groups": ["country,"]}, "there is one without a name"),
        (lambda t: t, {"groups": ["annotator"]}, "annotator tells annotators apart"),
        (lambda t: t, {"groups": ["country", "age,annotator"]}, "annotator tells annotators apart"),
        (lambda t: t, {"columns": {"item": "annotator"}},
         "annotator cannot be two of item, annotator, label"),
    ],
)  # fmt: skip
def test_labels_and_groups_that_are_none_are_refused(tmp_path, change, options, match):
    path = written(change(long_table(items=10)), tmp_path / "mine.csv")
    with pytest.raises(SourceError, match=match):
        read_annotations(path, **options)


def test_one_annotator_is_reported_without_groups():
    table = long_table(people=2).query("annotator == 'worker-0'")
    report = report_of(table)
    assert report.groupings[0].groups is None
    assert "Not shown: no group has 5 annotators" in render_page(report)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty; it needs a row of column names"),
        (b"item,annotator,label,label\na,b,1,0\n", "has several columns label"),
        (
            "item,annotator,label\na,é,1\nb,f,0\n".encode("latin-1"),
            "undecodable_text 1 .*--encoding cp1252",
        ),
        (
            b"item annotator label\na b 1\n",
            "has no column 'item', 'annotator', 'label'; it has column 1",
        ),
    ],
)
def test_files_that_are_no_tables_are_refused(tmp_path, content, match):
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=match):
        read_annotations(path)


def test_two_labels_may_have_a_probability_each(tmp_path):
    table = long_table(items=30)
    both = table.assign(prob_0=(1 - table["prob"]).round(4), prob_1=table["prob"])
    one = read_annotations(written(table, tmp_path / "one.csv"))
    two = read_annotations(written(both.drop(columns="prob"), tmp_path / "two.csv"))
    assert two.y_prob[:, 1] == pytest.approx(one.y_prob)
    rounded = three_labels(items=30).assign(prob_a=0.33, prob_b=0.33, prob_c=0.33)
    found = read_annotations(written(rounded, tmp_path / "three.csv")).y_prob
    assert found == pytest.approx(np.full((30, 3), 1 / 3))


def test_the_page_says_of_which_label_the_probability_is():
    table = long_table(items=30)
    words = table.assign(label=table["label"].map({0: "none", 1: "hateful"}))
    assert "none is the positive one, for which the model gives the probability" in render_page(
        report_of(words)
    )
    assert "gives the probability" not in render_page(report_of(words, prob=False))
    many = table.assign(label=np.arange(len(table)) % 30)
    assert "and 20 more" in render_page(report_of(many, prob=False))


def test_options_out_of_range_are_refused(tmp_path, capsys):
    table = long_table(items=10)
    path = written(table, tmp_path / "mine.csv")
    with pytest.raises(MetricInputError, match="at least 1 annotator, got 0"):
        report_of(table, minimum=0)
    with pytest.raises(MetricInputError, match=r"threshold must be in \[0, 1\]"):
        report_of(table, threshold=1.5)
    for option, problem in (
        (("--minimum", "0"), "is not in the range"),
        (("--column", "words=text"), "'words' is none of item, annotator, label, time, prob"),
        (("--column", "item"), "use NAME=COLUMN"),
    ):
        with pytest.raises(SystemExit):
            main(["annotations", "report", str(path), *option])
        assert problem in " ".join(capsys.readouterr().err.split())
    people = table.drop_duplicates("annotator").set_index("annotator")["country"]
    with pytest.raises(MetricInputError, match="a,b and a_b would have the same files"):
        annotation_report(annotations_of(table), groups={"a,b": people, "a_b": people})


def test_labels_that_are_all_alike_are_reported():
    table = long_table(items=40)
    annotations = Annotations.from_columns(
        item=table["item"], annotator=table["annotator"], label=[1] * len(table), classes=(0, 1)
    )
    people = table.drop_duplicates("annotator").set_index("annotator")["country"]
    prob = table.drop_duplicates("item")["prob"]
    report = annotation_report(annotations, y_prob=prob, groups={"country": people})
    assert report.reason == "all labels are the same; they show no slip"
    (grouping,) = report.groupings
    assert grouping.clusters is None
    assert grouping.kappa["kappa"].isna().all()
    assert "nan" not in render_page(report)


def test_without_a_majority_the_page_goes_on():
    table = long_table(items=40, people=10)
    table["label"] = np.tile([0, 1], len(table) // 2)
    table["country"] = np.where(table["label"] == 1, "x", "y")
    report = report_of(table)
    rows = report.groupings[0].table.set_index("metric")
    assert rows.loc["mean_delta", "value"].isna().all()
    assert "nan" not in render_page(report)


def test_one_group_has_no_other_to_compare_it_with():
    page = render_page(report_of(long_table(items=60).assign(country="here")))
    assert "no other to compare it with" in page
    assert "no more than chance" not in page


def test_names_of_groups_are_no_formulas_and_no_markup(tmp_path):
    table = long_table(items=40)
    table["country"] = table["country"].map({"strictland": "=1+1", "mildland": "<b>mild</b>"})
    path, out = written(table, tmp_path / "mine.csv"), tmp_path / "out"
    assert (
        main(["annotations", "report", str(path), "--group", "country", "--output", str(out)]) == 0
    )
    for name in ("groups_country", "kappa_country"):
        groups = pd.read_csv(out / f"{name}.csv")["group"]
        assert set(groups) == {"'=1+1", "<b>mild</b>"}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<b>mild" not in page
    assert "&lt;b&gt;mild" in page
