"""The append-only decision log: its hash chains, their verification, current labels, export."""
