"""The demo's command: which model it trains."""

import pytest

from modwatch.cli.models import train
from modwatch_lab.demo import run


@pytest.mark.parametrize("encoder", [None, "../shared/models/minilm-l6"])
def test_the_champion_is_the_offline_model_or_the_encoder(encoder):
    command, *arguments = run.training_arguments("wikipedia_talk", encoder)
    options = train.make_context(command, arguments).params
    assert (options["data"], options["encoder"]) == (("wikipedia_talk",), encoder)
    assert options["alias"] == "champion"
