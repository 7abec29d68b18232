"""What the page for ops teams says of audits."""

from modwatch.installation.mounted import last_audit


def test_an_audit_is_shown_once_it_is_published(after):
    signed = after("sign_off")
    assert last_audit(signed) is None
    signed.audit("small").publish()
    shown = last_audit(signed)
    assert shown is not None
    name, _, figures = shown.partition(": ")
    assert name == "small, 2026-01-05 to 2026-01-06"
    assert [figure.split()[0] for figure in figures.split("; ")] == ["precision", "recall"]
