"""Which comments people see, and with what probability."""
