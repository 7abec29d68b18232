"""The command line, `modwatch`."""
