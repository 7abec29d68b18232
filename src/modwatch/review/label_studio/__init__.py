"""Import and export of tasks and labels of Label Studio."""
