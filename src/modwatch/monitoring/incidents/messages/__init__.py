"""The text of alerts: metric values, names and links, never the text of a comment."""
