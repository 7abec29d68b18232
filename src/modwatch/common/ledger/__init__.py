"""An append-only ledger: entries in hash chains, texts bound by salted commitments, witnesses.

The decisions and events in PostgreSQL, the steps of an audit and the register of audits are ledgers
of this kind. `chain` defines hashes, commitments, verification and witnesses, and a chain as a text
with one entry per line; `signatures` and `timestamps` who vouches for an entry.
"""
