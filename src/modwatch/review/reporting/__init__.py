"""What leads see: queues, people, the history of a comment."""
