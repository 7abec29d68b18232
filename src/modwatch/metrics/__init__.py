"""How well model and moderators do together: pure functions to floats."""
