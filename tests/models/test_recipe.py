from pathlib import Path

import pytest

from modwatch.common.errors import ModelError
from modwatch.models.recipe import Recipe


@pytest.mark.parametrize(
    "change",
    [
        {"method": "oracle"},
        {"loss": "hinge"},
        {"calibration": "astrology"},
        {"pooling": "median"},
        {"epochs": 0},
        {"held_out": 0.9},
        {"members": 0},
        {"expected_prevalence": 0.0},
        {"threshold": 1.5},
        {"layers": 1, "hidden_size": 10, "attention_heads": 3},
    ],
)
def test_impossible_recipes_are_refused_by_name(change):
    with pytest.raises(ModelError, match=f"recipe: {[*change][-1] if len(change) == 1 else ''}"):
        Recipe(**change)


def test_json_round_trip():
    recipe = Recipe(layers=2, expected_prevalence=0.02)
    assert Recipe.from_json(recipe.to_json(), origin=Path("x")) == recipe


def test_json_of_another_version_names_file_and_field():
    with pytest.raises(ModelError, match=r"x/modwatch\.json.*warp_speed"):
        Recipe.from_json({"warp_speed": 9}, origin=Path("x/modwatch.json"))
