"""An append-only ledger: entries in hash chains, texts bound by salted commitments, witnesses.

The decisions and events in PostgreSQL and the steps of an audit are ledgers of this kind. `chain`
defines hashes, commitments, verification and witnesses, and a chain as a text with one entry per
line; `signatures` and `timestamps` who vouches for an entry.
"""
