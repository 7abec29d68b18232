"""The outbox: messages to people and programs outside, stored first and then sent."""
