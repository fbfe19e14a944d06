"""A request that an agent writes by itself reaches no other place than its own."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from sm.issues.act.forge_requests import ForgeVerb, list_requests, make_request
from sm.store.files import ensure_private_dir, write_json
from sm.store.paths import SessionDir


def test_the_id_of_a_request_is_that_of_its_file(tmp_path: Path) -> None:
    directory = SessionDir(tmp_path)
    ensure_private_dir(directory.asks)
    good = make_request(ForgeVerb.PULL, 3)
    bad = make_request(ForgeVerb.PULL, 4)
    write_json(directory.asks / f"{good.id}.ask.json", good)
    for ident in ("../..", "../../x", "other"):
        write_json(directory.asks / "y.ask.json", structs.replace(bad, id=ident))
        assert list_requests(directory) == [good]
