"""Where comments come from, and the lake they are kept in."""
