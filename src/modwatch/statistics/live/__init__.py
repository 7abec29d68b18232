"""Estimation of metrics from a designed sample of labels.

`labelled_day` describes one day and its design; `population` derives what follows from the known
scores of all comments; `sample` weights the labelled comments of several days; `ratios` and `areas`
estimate quotients and areas under curves; `estimator` applies them to every metric; `measure`
returns tables; `sample_size` plans how many labels are required.
"""
