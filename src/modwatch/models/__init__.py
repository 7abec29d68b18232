"""Toxicity models that know how sure they are."""
