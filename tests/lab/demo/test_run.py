"""The demo's command: which model it trains."""

from typing import Any

import pytest

from modwatch.cli.main import main
from modwatch.cli.models import train
from modwatch_lab.demo import run


@pytest.mark.parametrize("encoder", [None, "../shared/models/minilm-l6"])
def test_the_champion_is_the_offline_model_or_the_encoder(encoder: str | None) -> None:
    command, *arguments = run.training_arguments("wikipedia_talk", encoder)
    options = train.make_context(command, arguments).params
    assert (options["data"], options["encoder"]) == (("wikipedia_talk",), encoder)
    assert options["alias"] == "champion"


def test_the_command_hands_the_encoder_on(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def run_demo(name: str, **options: Any) -> int:
        given.update(options, name=name)
        return 0

    monkeypatch.setattr(run, "run_demo", run_demo)
    arguments = ["--data", "wikipedia_talk", "--encoder", "minilm-l6", "--once"]
    assert main(["demo", *arguments]) == 0
    assert (given["name"], given["encoder"], given["once"]) == ("wikipedia_talk", "minilm-l6", True)
    assert given["scorer"] == "local"
    assert main(["demo", "--scorer", "serve"]) == 0
    assert given["scorer"] == "serve"
    assert not given["drift"]
    assert main(["demo", "--drift"]) == 0
    assert given["drift"]
