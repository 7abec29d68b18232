"""The review queue, the people who work it, and their decisions.

Packages, from the top layer down:

- `console`: web pages and HTTP API;
- `simulated`: moderators with known error rates, who work through the HTTP API;
- `label_studio`: import and export of tasks and labels;
- `search`, `workload`: search of decisions, and reports for leads and auditors;
- `quality_control`: gold items, retests, and agreement between people;
- `people`: accounts, authentication, scopes;
- `queue`: items, leases, decisions;
- `log`: the append-only decision log, its verification and export;
- `policy`: the moderation policy;
- `outbox`: messages to the platform and to other receivers;
- `tables`, `migrations`, `database`, `embedded`, `migrate`: PostgreSQL.

The contract `review layers` of import-linter keeps this order.
"""
