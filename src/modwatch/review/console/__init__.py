"""The console: an HTTP API for programs, and a plain page for people."""
