"""Serves a model over HTTP by the Open Inference Protocol, version 2."""
