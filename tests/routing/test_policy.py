"""The digest of a policy."""

from dataclasses import replace

from modwatch.routing.policy import RoutingPolicy


def test_every_value_that_decides_who_is_reviewed_changes_the_digest():
    policy = RoutingPolicy(review_fraction=0.1)
    others = [
        replace(policy, review_fraction=0.2),
        replace(policy, slice_share=0.2),
        replace(policy, strategy="toxicity"),
        replace(policy, toxic_share=0.4),
        replace(policy, strata=4),
        replace(policy, minimum=1),
    ]
    assert len({policy.digest, *(other.digest for other in others)}) == 7


def test_confirmations_come_on_top_and_move_no_slice():
    policy = RoutingPolicy(review_fraction=0.1)
    assert replace(policy, confirmation_share=0.5).digest == policy.digest
