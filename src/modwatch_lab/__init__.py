"""The laboratory: demonstration, invented community, research corpora, the papers' benchmarks.

`modwatch` never imports it; its commands, sources and training data are found by entry points.
"""
