"""The lake: Delta tables partitioned by day, their schemas, and plain files beside them."""
