"""The review queue: tables, operations, console."""
