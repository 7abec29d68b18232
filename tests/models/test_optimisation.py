import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from modwatch.models.optimisation import loss_of
from modwatch.models.recipe import Recipe

logits = st.lists(st.floats(-20, 20), min_size=1, max_size=8)


@given(logits=logits, target=st.floats(0, 1), weight=st.floats(0.1, 10))
def test_focal_with_gamma_zero_is_cross_entropy(logits, target, weight):
    logit, labels = torch.tensor(logits), torch.full((len(logits),), target)
    plain = loss_of(Recipe(positive_weight=weight), logit, labels)
    focal = loss_of(Recipe(loss="focal", focal_gamma=0, positive_weight=weight), logit, labels)
    assert torch.equal(plain, focal)


def test_focal_loss_follows_lin_et_al():
    """Eq. 4: −(1 − p_t)^γ·log p_t."""
    logit, label = torch.tensor([1.5, -0.5]), torch.tensor([1.0, 1.0])
    p = torch.sigmoid(logit)
    expected = (-((1 - p) ** 3) * torch.log(p)).mean()
    found = loss_of(Recipe(loss="focal", focal_gamma=3), logit, label)
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)


def test_shares_of_annotators_have_their_least_loss_at_the_share():
    grid = torch.linspace(-3, 3, 601)
    for loss in ("cross_entropy", "focal"):
        recipe = Recipe(loss=loss)  # type: ignore[arg-type]
        values = torch.stack([loss_of(recipe, point[None], torch.tensor([0.3])) for point in grid])
        assert torch.sigmoid(grid[values.argmin()]).item() == pytest.approx(0.3, abs=0.01)


def test_toxic_comments_may_weigh_more():
    logit, label = torch.zeros(2), torch.tensor([1.0, 0.0])
    plain, heavy = (
        loss_of(Recipe(positive_weight=weight), logit, label).item() for weight in (1, 3)
    )
    assert heavy == pytest.approx(2 * plain)
