"""Data validation: rules, results, quarantine, the day's profile, the page of the day.

A suite of Great Expectations validates the rows of a day, then the valid ones as a whole and
against the trailing days (`comments.validate_comments`, `scores.validate_scores`), with the
expectations of a file of the installation (`own_expectations`). Rows are split (`rows`), the
profile is kept (`profiles.save_profile`), the result is published (`page.publish_result`). No
result has a text or an id.
"""
