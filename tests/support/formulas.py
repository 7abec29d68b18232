"""Cells that a spreadsheet might run."""

#: What people try in a cell, each of which some spreadsheet has run or swallowed.
FORMULAS = [
    "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", " =1", '"=1', "'=1", "\u00a0=1",
    "\ufeff=1", "\u200b=1", "\u202e=1", "“=1", "＝1", "＋1", "－1", "＠a", "\x00=1", "\x0b-1",
    ' " =cmd|"/c calc"!A1', "'", "\t", "\u2028=1", "\x1b=1",
]  # fmt: skip
