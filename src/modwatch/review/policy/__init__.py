"""What moderators decide by."""
