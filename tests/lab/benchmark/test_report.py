"""The report: every figure, what differs follows what ran, and it opens without a network."""

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from modwatch.cli.main import main
from modwatch.models.recipe import METHODS
from modwatch_lab.benchmark import paper
from modwatch_lab.benchmark.report import CURVES, render_report
from modwatch_lab.benchmark.summary import finding_sentences, idle_models

PAPER = Path(__file__).resolve().parents[4] / "shared" / "papers"


@pytest.fixture(scope="module")
def page(finished):
    return (finished.folder / "report.html").read_text("utf-8")


@pytest.fixture(scope="module")
def words(page):
    return unescape(re.sub(r"<[^>]+>", " ", page))


def test_the_report_has_every_figure_and_the_paper_next_to_it(finished, words):
    for row in finished.results["table"]:
        assert f"{row['mean']:.4f}" in words
        assert f"{row['paper']:.4f}" in words
    idle = idle_models(finished.results["table"])
    for row in finished.results["curves"]:
        if row["metric"] not in CURVES or (row["domain"], row["loss"], row["method"]) in idle:
            continue
        assert (f"{row['mean']:.4f}" if row["mean"] is not None else "not defined") in words
    for table in ("table 2", "table 3"):
        assert f"the paper’s figures ({table})" in words
    for sentence in finished.results["sentences"]:
        assert sentence in words


def test_a_model_that_flags_next_to_nothing_is_named_and_not_praised(finished):
    results = json.loads(json.dumps(finished.results))
    domain, loss, method = next(
        (row["domain"], row["loss"], row["method"]) for row in results["table"]
    )
    for row in results["table"]:
        if (row["domain"], row["loss"], row["method"]) == (domain, loss, method):
            row["mean"] = row["nothing"]
    words = unescape(re.sub(r"<[^>]+>", " ", render_report(results)))
    assert f"{paper.METHOD_TITLES[method]}, flags next to nothing" in words
    assert "every toxic comment is an error that a review finds" in words
    assert words.count("Flags nothing") == len(results["losses"]) * len(paper.DOMAINS)
    [nothing] = {
        row["nothing"] for row in results["table"]
        if (row["domain"], row["metric"]) == (domain, "auroc")
    }  # fmt: skip
    assert nothing == 0.5


def test_a_picture_for_each_curve_with_its_table(page):
    assert page.count('<img src="data:image/svg+xml;base64,') == 2 * len(CURVES)
    assert len(re.findall(r'<img [^>]*alt="[^"]{40,}"', page)) == 2 * len(CURVES)
    assert page.count("<summary>Values</summary>") == 2 * len(CURVES)


def test_the_page_loads_nothing_and_runs_nothing(page):
    assert "<script" not in page
    assert "style=" not in page.replace("style-src", "")
    assert re.search(r"Content-Security-Policy\" content=\"default-src 'none'", page)
    assert not re.findall(r'(?:src|href)="(?!data:|#)', page)


def here(results: dict[str, Any], name: str) -> dict[str, Any]:
    [aspect] = [entry for entry in results["aspects"] if entry["name"] == name]
    return dict(aspect)


def test_what_differs_follows_what_ran(finished, data):
    results = finished.results
    assert here(results, "Members of an ensemble")["here"] == "2"
    assert here(results, "Passes of Monte Carlo dropout")["here"] == "2"
    assert here(results, "Model runs (seeds) that are averaged")["here"] == "2"
    assert (
        f"{len(data.train.texts):,} of 20,000 comments"
        in here(results, "Training comments")["here"]
    )
    counted = data.train.left_out
    assert here(results, "Duplicates of tested comments in the training comments")["here"] == (
        f"left out: {counted.get('exact_duplicates_of_tested_comments', 0)} exact and "
        f"{counted['near_duplicates_of_tested_comments']} near duplicates of the comments drawn"
    )
    assert re.search(
        r"took \d+( to \d+)? steps of at most 32 comments", here(results, "Epochs")["here"]
    )
    assert here(results, "Methods and losses")["same"]
    assert "bag of subwords (300 byte pairs, 16 wide" in here(results, "Encoder")["here"]
    assert here(results, "Focal loss")["here"].startswith("γ = 2")
    assert here(results, "Learning rate of the head")["here"] == "0.5 times that of the encoder"
    assert "for all comments and positions" in here(results, "Masks of Monte Carlo dropout")["here"]
    assert "in one more pass" in here(results, "SNGP: Laplace precision")["here"]
    assert here(results, "SNGP: kernel")["here"] == "32 random features of the Gaussian kernel"
    assert here(results, "SNGP: kernel")["same"]


def test_the_finding_is_stated_by_model():
    rows = [
        {"domain": "in_domain", "loss": loss, "method": "sngp", "alpha": alpha, "mean": 0.1,
         "verdict": verdict}
        for loss, verdicts in (
            ("focal", ["uncertainty better"] * 2),
            ("cross_entropy", ["uncertainty better", "undecided"]),
        )
        for alpha, verdict in zip((0.1, 0.2), verdicts, strict=True)
    ]  # fmt: skip
    [sentence] = finding_sentences(rows)
    assert "in 3 of 4 comparisons" in sentence
    assert sentence.endswith("for 1 of 2 models, not for SNGP (cross-entropy).")


def test_published_figures_are_those_of_the_paper():
    [path] = [*PAPER.glob("000_*.txt")] or [None]
    if path is None:
        pytest.skip("the text of the paper is not here")
    text = path.read_text("utf-8")
    titles = {"ensemble": "DEEP ENSEMBLE", "mc_dropout": "MC DROPOUT"}
    for domain, heading in (("in_domain", "(TEST)"), ("out_of_domain", "(DEPLOYMENT)")):
        table = text.split(f"MODEL {heading} AUROC")[1].split("Table")[0]
        for place, loss in enumerate(paper.LOSS_TITLES):
            for method in METHODS:
                title = titles.get(method, method.replace("_", " ").upper())
                lines = re.findall(rf"^{title} ((?:\d\.\d+ ?){{7}})$", table, re.MULTILINE)
                figures = [float(number) for number in lines[place].split()]
                assert list(paper.published(domain, loss, method).values()) == figures


ARGUMENTS = ["benchmark", "cotomod", "--data", "synthetic", "--train-examples", "300",
             "--test-examples", "150", "--methods", "deterministic", "--losses", "focal",
             "--seeds", "3", "--device", "cpu"]  # fmt: skip


def test_the_command(tmp_path, capsys):
    folder, recipe = tmp_path / "new" / "folder", tmp_path / "recipe.toml"
    recipe.write_text("max_steps = 3\n")
    arguments = [*ARGUMENTS, "--recipe", str(recipe), "--output", str(folder)]
    assert main(arguments) == 0
    output = capsys.readouterr().out
    assert f"{folder / 'report.html'} has the report\n" in output
    assert json.loads((folder / "results.json").read_bytes())["seeds"] == [3]
    assert main(arguments) == 0
    assert "1 runs, 1 of them kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "oracle"], "--methods must be of deterministic"),
        (["--recipe", "nowhere.toml"], "--recipe names nowhere.toml"),
        (["--civil-comments", "x"], "--data synthetic reads no files"),
        (["--device", "tpu"], "the device must be auto, cpu, cuda or cuda:n"),
    ],
)
def test_errors_of_the_command_are_one_sentence(arguments, message, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main([*ARGUMENTS, "--output", str(tmp_path), *arguments]) == 1
    output = capsys.readouterr().err
    assert message in output
    assert output.count("\n") == 1


def test_help_does_not_import_torch():
    code = "import sys; from modwatch.cli.main import main\n"
    code += "try: main(['benchmark', 'cotomod', '--help'])\n"
    code += "except SystemExit: sys.exit(int('torch' in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0
    assert "--civil-comments PATH" in done.stdout
