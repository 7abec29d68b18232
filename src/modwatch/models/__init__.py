"""The toxicity model: training, calibration, artifact and registry."""
