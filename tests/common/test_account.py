import pytest

from modwatch.common.account import Account
from modwatch.common.errors import SourceError


def test_an_account_that_does_not_close_is_an_error():
    account = Account(read=3)
    account.count("used", 2)
    with pytest.raises(SourceError, match=r"a\.csv has 3 lines and records, but 2 are accounted"):
        account.close("a.csv")
    account.count("header")
    account.close("a.csv")


def test_the_rows_are_shown_in_order_with_the_first_of_those_left_out():
    account = Account(read=10)
    account.count("used", 4, where="a.csv, line 2")
    for place, number in {"no_text": 1, "blank_line": 2, "header": 1, "merged": 0}.items():
        account.count(place, number)
    account.count("blank_text", where="a.csv, line 3")
    account.count("blank_text", where="a.csv, line 9")
    account.close("a.csv")
    assert account.rows() == [
        ("Header lines", 1, ""),
        ("Blank lines", 2, ""),
        ("blank_text", 2, "a.csv, line 3"),
        ("no_text", 1, ""),
        ("Used records", 4, ""),
    ]
    assert account.left_out == {"no_text": 1, "blank_text": 2}
    assert account.first == {"blank_text": "a.csv, line 3"}  # used records have none


def test_a_place_is_split_into_its_parts():
    account = Account(read=5, places={"landed": 5})
    account.move("landed", {"used": 3, "blank_text": 1})
    with pytest.raises(SourceError, match="5 lines and records, but 4"):
        account.close("the source")


def test_most_records_with_one_fault_are_an_error():
    account = Account(places={"header": 9, "used": 2, "no_label": 9, "missing_id": 11})
    account.first["missing_id"] = "a.csv, line 3"
    account.require_most("a.csv", {"missing_id": "name the column"})
    account.count("missing_id", 2)
    with pytest.raises(SourceError, match=r"most of 24 records .* line 3; name the column\)"):
        account.require_most("a.csv", {"missing_id": "name the column"})


def test_of_several_sources_the_first_row_that_was_left_out_is_named():
    accounts = [Account(read=1), Account(read=1)]
    for account, name in zip(accounts, "ab", strict=True):
        account.count("blank_text", where=f"{name}.csv, line 2")
    accounts[0].add(accounts[1])
    accounts[0].close("both")
    assert accounts[0].rows() == [("blank_text", 2, "a.csv, line 2")]
