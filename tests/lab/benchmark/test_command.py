"""The command of the benchmark, the paper's figures, and the sentence about its finding."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from modwatch.cli.main import main
from modwatch.models.recipe import METHODS
from modwatch_lab.benchmark import paper
from modwatch_lab.benchmark.summary import finding_sentences

PAPER = Path(__file__).resolve().parents[4] / "shared" / "papers"


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
    assert f"{folder} has the figures\n" in output
    assert json.loads((folder / "results.json").read_bytes())["seeds"] == [3]
    assert main(arguments) == 0
    assert "1 runs, 1 of them kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "oracle"], "--methods must be of deterministic"),
        (["--recipe", "nowhere.toml"], "nowhere.toml cannot be read"),
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
