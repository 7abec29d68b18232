"""The benchmark CoToMoD of Kivlichan et al. (2021): five methods, two losses, two environments.

corpora       training, test and deployment comments
runs          one model of the benchmark: trained, scored, kept
evaluation    the figures of one run
summary       means and intervals over the seeds, and the paper's finding
cotomod       all of it, in this order
"""

from modwatch_lab.benchmark.cotomod import run_cotomod

__all__ = ["run_cotomod"]
