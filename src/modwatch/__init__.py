"""Modwatch watches a content-moderation system in which a model decides most comments.

A comment's path, and where each step lives:

    ingest → check → score → route → review → measure

Read `modwatch.pipeline` first: one short function a step, in this order.
"""
