"""Alert rules, the incidents that they open, and the delivery of notifications."""
