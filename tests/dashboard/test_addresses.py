"""Short links to long views."""

from __future__ import annotations

import pytest

pytest.importorskip("panel")

from rl_coach.dashboard import addresses as module
from rl_coach.dashboard.addresses import LONGEST_NAME, LONGEST_QUERY, Addresses
from rl_coach.dashboard.page import Page
from rl_coach.dashboard.store import Store
from tests.dashboard.runs import write_run

LONG = "?" + "&".join(f"runs=CartPole_DQN/seed_{seed}" for seed in range(60))


def test_a_long_view_is_kept_and_found_again_also_by_a_later_server(tmp_path):
    addresses = Addresses(tmp_path / "views")
    short = addresses.shortened(LONG)
    assert len(short) < 30 and short == addresses.shortened(LONG) != addresses.shortened(LONG + "1")
    assert addresses.whole(short) == Addresses(tmp_path / "views").whole(short) == LONG
    assert (tmp_path / "views").read_text().count("\n") == 2


def test_a_short_view_stays_in_the_address(tmp_path):
    addresses = Addresses(tmp_path / "views")
    for query in ("", "?runs=a", "?" + "a" * (LONGEST_QUERY - 1)):
        assert addresses.shortened(query) == addresses.whole(query) == query
    assert not (tmp_path / "views").exists()


def test_an_unknown_name_is_no_view(tmp_path):
    assert Addresses().whole("?view=0123456789ab") is None
    (tmp_path / "views").write_bytes(b"\xff\nname\nname nothing\n")
    assert Addresses(tmp_path / "views").whole("?view=name") is None


def test_a_directory_that_cannot_be_written_keeps_links_in_memory(tmp_path):
    addresses = Addresses(tmp_path / "missing" / "views")
    assert addresses.whole(addresses.shortened(LONG)) == LONG
    assert not (tmp_path / "missing").exists()


def test_the_oldest_views_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_VIEWS", 2)
    addresses = Addresses(tmp_path / "views")
    links = [addresses.shortened(f"{LONG}&{number}") for number in range(3)]
    for known in (addresses, Addresses(tmp_path / "views")):
        assert [known.whole(link) is None for link in links] == [True, False, False]


def test_a_page_shows_the_view_of_a_short_link(tmp_path):
    for seed in range(20):
        write_run(tmp_path, "CartPole_DQN", f"21_11_2026-10_3{seed}", rows=5, seed=seed)
    store = Store(tmp_path)
    store.scan()
    page = Page(store, "")
    page.look()
    page.change(runs=tuple(store.runs), x="time")
    assert page.bar.query.startswith("?view=")
    other = Page(store, page.bar.query)
    assert other.view == page.view
    lost = Page(store, "?view=unknown")
    lost.look()
    assert "is unknown: another dashboard made the link, or the view is not stored any more" in lost.warning


def test_saved_views_are_kept_renamed_and_removed(tmp_path):
    path = tmp_path / ".views"
    addresses = Addresses(path)
    long = "?runs=" + "a" * 500
    short = addresses.shortened(long)
    addresses.save("  my\nview <b>& 100% ", "?x=time")
    addresses.save("other", "?")
    addresses.save("other", long)
    addresses.save("gone", "?x=steps")
    addresses.save("gone", None)
    addresses.save(" ", "?x=time")
    addresses.save("too long", "?" + "a" * (1 << 17))
    for again in (addresses, Addresses(path)):
        assert again.saved == {"my view <b>& 100%": "?x=time", "other": long}
        assert again.whole(short) == long
    addresses.save("a" * 1000, "?")
    assert len(max(Addresses(path).saved, key=len)) == LONGEST_NAME
