"""How well people agree, and the unmarked items by which it is seen."""
