"""The review queue, the people who work it, and what they decided.

Room by room:

- `queue`: who is served what, and what becomes of it;
- `log`: the append-only decision log, its check, the labels that stand, the export;
- `people`: accounts, every way in, and what each may do;
- `policy`: what moderators decide by;
- `checks`: retests, gold items, and how well people agree;
- `oversight`: what leads see, search, the history of a comment;
- `outbox`: what is told to the platform and to others outside;
- `label_studio`: tasks and labels to and from that tool;
- `console`: pages and HTTP API over all of it;
- `tables`, `migrations`, `database`, `embedded`, `migrate`: PostgreSQL;
- `simulated`: moderators with known error rates.
"""
