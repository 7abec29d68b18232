"""Tasks and labels to and from Label Studio."""
