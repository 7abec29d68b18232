"""The whole system on one machine, for a look: `make demo`."""
