import pytest

from leapmodel.paper.round_timeline import sequential_steps, speculative_round


def test_a_round_lasts_the_proposing_the_longest_used_wait_and_one_tool():
    for accepted in range(3):
        gen_s = [1.0, 3.0, 2.0]
        spans = speculative_round(gen_s, accepted=accepted, draft_s=0.1, tool_s=0.2)
        wait = max(gen_s[: accepted + 1])
        assert max(s.end for s in spans) == pytest.approx(2 * (0.1 + 0.2) + wait + 0.2)
        used = [s for s in spans if s.what == "target"]
        assert len(used) == accepted + 1
        assert all(s.end <= 0.6 + wait + 1e-12 for s in spans if s.what == "unused")


def test_in_sequence_every_step_pays_its_own_time():
    spans = sequential_steps([1.0, 3.0], tool_s=0.2)
    assert spans[-1].end == pytest.approx(4.4)
    assert [s.start for s in spans[1:]] == [s.end for s in spans[:-1]]


def test_more_accepted_than_proposed_is_refused():
    with pytest.raises(ValueError, match="between 0 and 1, found 2"):
        speculative_round([1.0, 1.0], accepted=2, draft_s=0.1, tool_s=0.0)
