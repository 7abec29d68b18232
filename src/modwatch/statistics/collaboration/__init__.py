"""How well a model and its reviewers decide together, where every label is known."""
