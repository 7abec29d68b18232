"""The HTML pages, one module per page of the navigation. Every address in them is relative."""
