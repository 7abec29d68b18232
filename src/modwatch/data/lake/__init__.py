"""The lake: Delta tables with one partition per day, and small files next to them."""
