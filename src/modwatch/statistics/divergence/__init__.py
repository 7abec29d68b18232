"""Divergence by group: whose opinion a model follows, and about whom it is less right.

    >>> from modwatch.statistics.disagreement import Annotations
    >>> from modwatch.statistics.divergence import conformity_delta
    >>> annotations = Annotations.from_columns(item=[0] * 3, annotator=[0, 1, 2], label=[1, 1, 0])
    >>> [round(float(delta), 2) for delta in conformity_delta(annotations, [0.9]).delta]
    [0.0, 0.0, 0.8]

Groups of annotators (Urbinati et al. 2025, *Are you sure? Measuring models bias in content
moderation through uncertainty*):

    groups        Groups, intersections
    release       shown_together
    conformity    conformity_delta, uncertainty_divergence
    profiles      annotator_profiles, demographic_divergence
    agreement     kappa_table, shared_items
    all figures   group_report

Comments that mention an identity: `identity_mentions`, `read_identity_terms`.

`docs/groups.md` explains them. Invalid arguments raise `modwatch.common.errors.MetricInputError`.
"""

from modwatch.statistics.divergence.annotator_groups import Groups, intersections, shown_together
from modwatch.statistics.divergence.conformity import (
    Conformity,
    conformity_delta,
    uncertainty_divergence,
)
from modwatch.statistics.divergence.group_agreement import kappa_table, shared_items
from modwatch.statistics.divergence.group_divergence import group_report
from modwatch.statistics.divergence.mentions import (
    identity_mentions,
    read_identity_terms,
)
from modwatch.statistics.divergence.profiles import (
    DemographicDivergence,
    Profiles,
    annotator_profiles,
    demographic_divergence,
)

__all__ = [
    "Conformity", "DemographicDivergence", "Groups", "Profiles", "annotator_profiles",
    "conformity_delta", "demographic_divergence", "group_report", "identity_mentions",
    "intersections", "kappa_table", "read_identity_terms", "shared_items", "shown_together",
    "uncertainty_divergence",
]  # fmt: skip
