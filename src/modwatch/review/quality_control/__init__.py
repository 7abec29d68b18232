"""Quality control: gold items and retests, and the agreement statistics computed from labels."""
