"""Reports of one file, which together reveal no figure of few people.

Figures of all women, less those of the women of each age, are those of the women whose age is not
shown, whichever reports they are from. So the groups that were shown are kept beside the file, in
FILE.groups.json; in a further report they stay as they are, and groups are suppressed that would
reveal few people together with them.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from modwatch.common.errors import SourceError
from modwatch.monitoring.annotation_report.contents import AnnotationReport, annotation_report
from modwatch.monitoring.annotation_report.table import AnnotationTable, read_annotations
from modwatch.statistics.divergence.annotator_groups import MINIMUM_ANNOTATORS


def report_of_file(
    path: Path,
    groups: Sequence[str],
    *,
    reading: Mapping[str, Any] | None = None,
    minimum: int = MINIMUM_ANNOTATORS,
    **options: Any,
) -> tuple[AnnotationTable, AnnotationReport]:
    """Return the annotations of a file and their report, and keep which groups it shows.

    `groups` and `reading` are arguments of `read_annotations`, `options` of `annotation_report`.

    Raises:
        SourceError: as `read_annotations`; or groups of the file were reported with another
            content, read otherwise, or with another minimum; or these cannot be kept.
    """
    kept = path.with_name(f"{path.name}.groups.json")
    before = _kept(kept) if groups else {}
    shown: dict[str, list[str]] = before.get("groups", {})
    table = read_annotations(path, groups=list({**shown, **dict.fromkeys(groups)}), **reading or {})
    read, digest = table.annotations, hashlib.sha256(path.read_bytes())
    for codes in (read.item, read.annotator, read.label):
        digest.update(codes.tobytes())
    state = {"digest": digest.hexdigest(), "minimum": minimum}
    if before and before != {**state, "groups": shown}:
        raise SourceError(
            f"groups of {path} were reported before, with another content, other options of "
            f"reading, or a minimum of {before.get('minimum')}; what differs between the reports "
            f"may be about few people. Report it as then, or delete {kept} if none was published"
        )
    report = annotation_report(
        read, y_prob=table.y_prob, groups=table.groups, minimum=minimum, released=shown, **options
    )
    if groups:
        found = {one.name: list(one.groups.names) for one in report.groupings if one.groups}
        _kept(kept, {**state, "groups": found})
    asked = tuple(one for one in report.groupings if one.name in groups)
    return table, replace(report, groupings=asked)


def _kept(place: Path, content: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what is kept, after `content` is; nothing without a file."""
    try:
        if content is not None:
            place.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
        return dict(json.loads(place.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as exc:
        raise SourceError(
            f"{place} keeps which groups were reported, and cannot be read and written "
            f"({type(exc).__name__}); restore it, or move the file to a folder that can be written"
        ) from None
