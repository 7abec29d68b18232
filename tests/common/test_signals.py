import signal
import threading
import weakref

import pytest

from modwatch.common.signals import signals_held


@pytest.fixture
def handled():
    numbers: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: numbers.append(number))
    yield numbers
    signal.signal(signal.SIGTERM, before)


def test_a_signal_comes_at_the_end_of_the_block(handled):
    with signals_held() as came:
        signal.raise_signal(signal.SIGTERM)
        assert list(came) == [signal.SIGTERM]
        assert handled == []
    assert handled == [signal.SIGTERM]


def test_a_signal_during_a_callback_of_a_weak_reference_is_not_lost(handled):
    class Thing:
        pass

    thing = Thing()
    reference = weakref.ref(thing, lambda _: signal.raise_signal(signal.SIGTERM))
    with signals_held():
        del thing
        assert reference() is None
    assert handled == [signal.SIGTERM]


def test_blocks_within_blocks_hand_the_signal_outwards(handled):
    with signals_held() as outer:
        with signals_held() as inner:
            signal.raise_signal(signal.SIGTERM)
            assert list(outer) == []
        assert list(inner) == list(outer) == [signal.SIGTERM]
        assert handled == []
    assert handled == [signal.SIGTERM]


def test_an_ignored_signal_has_not_come(handled):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with signals_held() as came:
        signal.raise_signal(signal.SIGTERM)
        assert list(came) == []
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    assert handled == []


def test_other_threads_have_nothing_to_put_off():
    came = []

    def hold() -> None:
        with signals_held() as held:
            came.append(list(held))

    thread = threading.Thread(target=hold)
    thread.start()
    thread.join()
    assert came == [[]]
