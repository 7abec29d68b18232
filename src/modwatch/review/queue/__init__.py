"""The review queue: which item is served to whom, and what they decide.

`intake` fills the queue and withdraws items, `leases` gives items to people, `deciding` records,
undoes and corrects what they do, `dismissal` closes many items at once, and `metrics` measures the
queue. `audits` queues the items of audits. `lanes` are the rules of service,
and `statements` the SQL of the operations that people wait for. Every function is one transaction,
and all times are those of the database's clock.
"""
