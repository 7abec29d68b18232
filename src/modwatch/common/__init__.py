"""What every room uses: errors, text, HTML pages, charts, days, signals."""
