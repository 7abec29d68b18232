"""Reports and search for leads and auditors."""
