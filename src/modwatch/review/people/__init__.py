"""The people who work the queue: accounts, roles, authentication.

Read `accounts` first, then `changes`, `access_tokens`, `sessions`, `passwords` with `throttle`, and
`oidc`. `pseudonyms` are people's names; `review.events` records who changed what.
"""
