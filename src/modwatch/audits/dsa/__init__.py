"""Automated means in the transparency reports of the EU's Digital Services Act.

Commission Implementing Regulation (EU) 2024/2835 defines the templates. Two files are about
automated means: part 8 (quantitative) and part 11 (qualitative). `automated_means` and
`qualitative` write them from an audit; `validate` validates files of any provider. Pure functions:
no files, clocks or databases.
"""
