"""Losses of a logit against a label or a share of annotators in [0, 1]."""

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from modwatch.models.recipe import Recipe


def loss_of(recipe: Recipe, logit: Tensor, target: Tensor) -> Tensor:
    """Return the mean loss of the recipe over N comments.

    Focal loss (Lin et al. 2017, Eq. 5, without its constant; Kivlichan et al. 2021, section 5)
    multiplies the cross-entropy with |y − p|^γ, which is (1 − p_t)^γ for labels, so that easy
    comments count less. `positive_weight` multiplies the part of toxic comments.

    Args:
        logit: (N,).
        target: (N,) in [0, 1].

    >>> easy_and_hard = torch.tensor([4.0, -4.0]), torch.ones(2)
    >>> plain = loss_of(Recipe(loss="cross_entropy"), *easy_and_hard)
    >>> bool(loss_of(Recipe(loss="focal", focal_gamma=0.0), *easy_and_hard) == plain)
    True
    """
    weight = torch.tensor(recipe.positive_weight, device=logit.device)
    logit, target = logit.float(), target.float()
    loss = binary_cross_entropy_with_logits(logit, target, pos_weight=weight, reduction="none")
    if recipe.loss == "focal" and recipe.focal_gamma:
        loss = loss * (target - torch.sigmoid(logit)).abs() ** recipe.focal_gamma
    return loss.mean()
