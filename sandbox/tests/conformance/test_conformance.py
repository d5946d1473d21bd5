"""The engine does with each row what the genuine CLI was recorded to do with it."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from pulumi_sandbox.engine.project.passphrase import PassphraseCrypter

from sandbox.tests.conformance import told
from sandbox.tests.conformance.engine import Embedded
from sandbox.tests.conformance.laboratory import PASSPHRASE, Laboratory, Row, rows
from sandbox.tests.conformance.page import PAGE, written
from sandbox.tests.conformance.recorded import Recorded, differences
from sandbox.tests.support.recording_provider import RecordingProvider, serving

RECORDED = Recorded.load()


@pytest.fixture(scope="module")
def crypter() -> PassphraseCrypter:
    return PassphraseCrypter.new(PASSPHRASE)


@pytest.fixture(scope="module")
def served() -> Generator[tuple[RecordingProvider, int]]:
    """Return a provider that is served for all rows."""
    provider = RecordingProvider()
    with serving(provider) as port:
        yield provider, port


@pytest.mark.parametrize("row", [pytest.param(each, id=f"{each.group}-{each.name}") for each in rows()])
def test_a_row_comes_to_what_the_genuine_cli_was_recorded_to_do(
    row: Row,
    tmp_path: Path,
    crypter: PassphraseCrypter,
    served: tuple[RecordingProvider, int],
    monkeypatch: pytest.MonkeyPatch,
):
    provider, port = served
    monkeypatch.setenv("PULUMI_DEBUG_PROVIDERS", f"fake:{port}")
    played = Laboratory(tmp_path / "project", crypter, provider).play(row, Embedded(crypter))
    if row.refused:
        assert any(row.refused in said for _, ended in played if ended.code for said in ended.said)
        return
    came = told.plain([each for each, _ in played])
    found = differences(RECORDED.of(row), came)
    assert {aspect for _, aspect, *_ in found} == row.differs.keys(), "\n".join(map(str, found))


def test_the_page_lists_what_the_rows_show():
    """`python -m sandbox.tests.conformance.page` writes it."""
    assert written() == PAGE.read_text(encoding="utf-8")
