"""Monitoring: measurements of days, the incidents behind alerts, and the pages that show both."""
