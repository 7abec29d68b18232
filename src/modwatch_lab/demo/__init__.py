"""The whole system on one machine, with simulated people: `make demo`."""
