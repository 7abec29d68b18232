"""What is told to people and programs outside: kept first, then sent."""
