"""The append-only decision log: its chains, their check, the labels that stand, the export."""
