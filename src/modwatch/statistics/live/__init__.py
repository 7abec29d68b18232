"""Estimation of metrics from a designed sample of labels.

`labelled_day` describes one day and its design; `population` derives what follows from the known
scores of all comments; `sample` weights the labelled comments of several days; `areas` estimates
quotients and areas under curves; `estimator` applies them to every metric; `measure` returns the
tables, `group_estimates` those of groups of comments, and `paired` those of two models; `figures`
is the registry of all estimates.
"""
