"""Whether an index has the entries, in the order, that a new index of the same table has."""

from __future__ import annotations

from engine import EngineError
from fileformat import Malformed
from snapshot import Entry, Snapshot


def index_complaint(snapshot: Snapshot, index: Entry) -> str | None:
    """What differs after REINDEX, which the snapshot's own copy of the files takes.

    It finds what integrity_check does not look for, such as entries without rows in a partial index. An index that
    cannot be built anew (the same key twice, an unknown function) is left to integrity_check.
    """
    try:
        entries, anew = snapshot.index(index), snapshot.index_anew(index)
    except (EngineError, Malformed):
        return None
    if entries == anew:
        return None
    lost = len(set(anew) - set(entries))
    more = len(set(entries) - set(anew))
    return f"{index} lacks {lost} entries and has {more} others, of {len(anew)}, or has another order"
