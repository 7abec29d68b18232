"""Comments on their way in: sources, validation and the lake that keeps them."""
